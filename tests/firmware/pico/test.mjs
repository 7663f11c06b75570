// Runs a firmware of examples/firmware/pico in rp2040js and is its USB host: a strict one, which hands on what the board sends
// only once a packet is short. Time is the emulator's, so that a slow machine changes nothing.
//   node test.mjs IMAGE        IMAGE: an ELF file
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { Simulator, USBCDC } from 'rp2040js';

const PACKET = 64;
const FLASH = 0x10000000;
const CYCLE = 8; // nanoseconds, at 125 MHz
const AVAILABLE = 1 << 10; // of a buffer control register: the buffer is the controller's
const [FIRST_OUT, LAST_OUT] = [0x8c, 0xfc]; // buffer control registers of endpoints 1 to 15, IN and OUT by turns

// Copies what belongs in flash; the image's vector table is behind the second boot loader, which is not run.
function load(mcu, path) {
  const elf = fs.readFileSync(path);
  const [at, count] = [elf.readUInt32LE(28), elf.readUInt16LE(44)];
  for (let header = at; header < at + 32 * count; header += 32) {
    const [type, offset, , physical, size] = [0, 4, 8, 12, 16].map((member) => elf.readUInt32LE(header + member));
    if (type === 1 && size > 0 && physical >= FLASH) mcu.flash.set(elf.subarray(offset, offset + size), physical - FLASH);
  }
  mcu.core.VTOR = FLASH + 0x100;
  mcu.core.reset();
}

class Board {
  constructor(path) {
    const { clock, rp2040 } = new Simulator();
    [this.clock, this.mcu] = [clock, rp2040];
    this.mcu.logger = { debug() {}, info() {}, warn() {}, error: (...words) => console.error('emulator:', ...words) };
    this.usb = this.mcu.usbCtrl;
    this.cdc = new USBCDC(this.usb);
    this.connected = false;
    this.reading = true; // Whether the host takes packets.
    this.kept = []; // Packets that it does not take.
    this.coming = []; // Bytes of a transfer that is not complete.
    this.heard = '';
    this.packets = 0;
    this.saying = [];
    this.asked = false; // The board waits for a packet.
    this.watch();
    load(this.mcu, path);
    this.until(() => this.connected, 'the board is on the bus');
    this.rest();
    this.port(true);
  }

  watch() {
    const { usb, cdc } = this;
    const registers = this.mcu.usbDPRAMView;
    const change = (register, value) => registers.setUint32(register, value, true);
    const [updated, finish] = [usb.DPRAMUpdated, usb.finishRead];
    // rp2040js takes AVAILABLE away from a buffer for reading as soon as it is set. embassy-rp looks at it, and the real
    // controller keeps it until the packet has come.
    usb.DPRAMUpdated = (register, value) => {
      const of_endpoint = value & AVAILABLE && register >= FIRST_OUT - 4 && register <= LAST_OUT;
      const out = register & 4;
      if (of_endpoint && !out && !this.reading) {
        this.kept.push(() => updated.call(usb, register, value));
        return;
      }
      updated.call(usb, register, value);
      if (of_endpoint && out) change(register, registers.getUint32(register, true) | AVAILABLE);
    };
    usb.finishRead = (endpoint, packet) => {
      const register = 0x84 + 8 * endpoint;
      change(register, registers.getUint32(register, true) & ~AVAILABLE);
      finish.call(usb, endpoint, packet);
    };
    usb.onEndpointRead = (endpoint) => {
      if (endpoint === cdc.outEndpoint) {
        this.asked = true;
        this.deliver();
      }
    };
    cdc.onDeviceConnected = () => (this.connected = true);
    cdc.onSerialData = (packet) => {
      this.packets += 1;
      this.coming.push(...packet);
      if (packet.length < PACKET) this.heard += Buffer.from(this.coming.splice(0)).toString();
    };
  }

  deliver() {
    if (!this.asked || this.saying.length === 0) return;
    this.asked = false;
    this.usb.endpointReadDone(this.cdc.outEndpoint, this.saying.shift());
  }

  // Lets the board run until `done`, for at most so many of its milliseconds.
  until(done, what, millis = 1000) {
    const end = this.clock.nanos + millis * 1e6;
    while (!done()) {
      assert.ok(this.clock.nanos < end, `after ${millis} ms of the board's time not yet: ${what}\nheard: ${this.heard}`);
      for (let i = 0; i < 100; i++) {
        if (this.mcu.core.waiting) {
          this.clock.tick(Math.min(this.clock.nanosToNextAlarm || 1e6, 1e6));
          break;
        }
        this.clock.tick(this.mcu.core.executeInstruction() * CYCLE);
      }
    }
  }

  rest(millis = 20) {
    const end = this.clock.nanos + millis * 1e6;
    this.until(() => this.clock.nanos >= end, 'time', millis + 1);
  }

  // Says bytes in packets; `ends`: with an empty one behind a last packet that is full.
  say(text, ends = false) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += PACKET) this.saying.push(new Uint8Array(bytes.subarray(at, at + PACKET)));
    if (ends && bytes.length % PACKET === 0) this.saying.push(new Uint8Array(0));
    this.deliver();
  }

  line() {
    this.until(() => this.heard.includes('\n'), 'a line');
    const end = this.heard.indexOf('\n') + 1;
    const line = this.heard.slice(0, end);
    this.heard = this.heard.slice(end);
    return line;
  }

  request(id, method, params, ends) {
    this.say(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n', ends);
  }

  answer(id, method, params, ends) {
    this.request(id, method, params, ends);
    const line = this.line();
    const answer = JSON.parse(line);
    assert.equal(answer.id, id, line);
    return { line, ...answer };
  }

  initialize() {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'host', version: '1' } };
    return this.answer('open', 'initialize', params);
  }

  // The client closes the port, or opens it.
  port(open) {
    // SET_CONTROL_LINE_STATE of interface 0: DTR and RTS. (That of rp2040js names the device in place of the interface.)
    this.usb.sendSetupPacket(new Uint8Array([0x21, 0x22, open ? 3 : 0, 0, 0, 0, 0, 0]));
    this.rest();
  }
}

const call = (name, args) => ['tools/call', { name, arguments: args }];

const tests = {
  'initialize, and the tools work'(board) {
    assert.equal(board.initialize().result.serverInfo.name, 'pico');
    assert.match(board.answer(1, ...call('read_temperature')).result.content[0].text, /^-?\d+\.\d\d degrees Celsius$/);
    for (const on of [true, false]) {
      board.answer(2, ...call('set_led', { on }));
      assert.equal(board.mcu.gpio[25].outputValue, on);
    }
    assert.equal(board.answer(3, ...call('history', { characters: 2000 })).result.content[0].text, '.'.repeat(2000));
  },

  'answers of 64, 128 and 192 bytes arrive, and those beside them'(board) {
    const ping = board.answer('', 'ping').line.length;
    const history = (characters) => board.answer(1, ...call('history', { characters })).line;
    const shortest = history(0).length;
    for (const length of [63, 64, 65, 127, 128, 129, 191, 192, 193, 512, 1024]) {
      const short = length < shortest;
      const line = short ? board.answer('i'.repeat(length - ping), 'ping').line : history(length - shortest);
      assert.equal(line.length, length);
    }
  },

  'an empty packet from the host is not the end'(board) {
    for (const length of [64, 128]) {
      const shortest = JSON.stringify({ jsonrpc: '2.0', id: '', method: 'ping', params: { a: '' } }).length + 1;
      board.answer('', 'ping', { a: 'a'.repeat(length - shortest) }, true);
      board.saying.push(new Uint8Array(0), new Uint8Array(0));
      board.deliver();
      board.answer(1, 'ping');
    }
  },

  'a client that leaves in the middle of a line'(board) {
    board.say('{"jsonrpc":"2.0","id":7,"meth');
    board.rest();
    board.port(false);
    board.say('od":"ping", of the client that has gone');
    board.rest();
    board.port(true);
    assert.equal(board.initialize().result.serverInfo.name, 'pico');
    assert.equal(board.heard, '');
  },

  'a client that leaves in the middle of an answer'(board) {
    board.request(8, ...call('history', { characters: 2000 }));
    const packets = board.packets;
    board.until(() => board.packets > packets + 3, 'the answer is under way');
    board.reading = false;
    board.rest();
    assert.equal(board.kept.length, 1, 'the endpoint has a packet that nobody takes');
    board.port(false);
    [board.coming, board.heard] = [[], ''];
    board.port(true);
    board.reading = true;
    board.kept.splice(0).forEach((packet) => packet());
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'host', version: '1' } };
    board.request('open', 'initialize', params);
    // The one packet that the endpoint had, on a line of its own.
    assert.match(board.line(), /^\.{64}\n$/);
    assert.equal(JSON.parse(board.line()).result.serverInfo.name, 'pico');
    board.answer(9, 'ping');
    assert.equal(board.heard, '');
  },
};

const board = new Board(process.argv[2]);
let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    test(board);
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}
console.log(`${Object.keys(tests).length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
