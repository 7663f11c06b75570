// Shows the panels of our servers in headless Chromium, in both eras of the protocol, and uses them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.join(here, '../..');
const file = (name) => readFileSync(path.join(here, name));
const LIMIT = 60_000;
const PICTURES = process.argv.includes('--pictures');
const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));

// The policy of a page whose `_meta.ui` has no `csp`, and the frame of the sandbox.
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "media-src 'self' data:; connect-src 'none'; frame-src 'self'; object-src 'none'; base-uri 'self'";

const SERVERS = {
  sysmon: { tool: 'overview', app: 'sysmon', question: 'How is this machine doing?', start: startSysmon, use: useSysmon },
  ethernet: { tool: 'show_board', app: 'board', question: 'Is the board too warm?', start: startBoard, use: useBoard },
};

const ends = [];
let checks = 0;
const ok = (what) => console.log(`ok ${(checks += 1)} ${what}`);

/** Starts a program, and waits until a line of its standard error matches. */
function start(command, args, env, pattern) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } });
  ends.push(() => new Promise((done) => {
    if (child.exitCode !== null || child.signalCode !== null) return done();
    child.once('exit', done);
    child.kill();
  }));
  let said = '';
  return new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`${command} does not start: ${said}`)), LIMIT);
    child.once('error', failed);
    child.once('exit', () => failed(new Error(`${command} has ended: ${said}`)));
    child.stderr.on('data', (bytes) => {
      said += bytes;
      const found = said.match(pattern);
      if (found) {
        clearTimeout(timer);
        done(found);
      }
    });
  });
}

async function startSysmon() {
  const [, port] = await start(process.env.SYSMON, ['--http', '127.0.0.1:0'], {}, /http:\/\/127\.0\.0\.1:(\d+)\/mcp/);
  return Number(port);
}

async function startBoard() {
  const port = await new Promise((done) => {
    const free = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = free.address();
      free.close(() => done(port));
    });
  });
  await start(path.join(root, 'examples/firmware/run.sh'), ['ethernet', String(port)], {}, /ethernet: ready/);
  return port;
}

/** Serves the host, and hands `/mcp` on to the server: for the browser it is one origin. */
function serve(files, upstream) {
  const server = http.createServer((request, response) => {
    if (request.url === '/mcp' && upstream) {
      const headers = { ...request.headers, host: `127.0.0.1:${upstream}` };
      delete headers.origin;
      delete headers.connection;
      const onward = http.request({ port: upstream, host: '127.0.0.1', path: '/mcp', method: request.method, headers, agent: false });
      onward.on('response', (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      response.on('close', () => onward.destroy());
      return void request.pipe(onward);
    }
    const found = files[request.url];
    response.writeHead(found ? 200 : 404, found ? { 'content-type': found.type, ...found.headers } : {});
    response.end(found?.body);
  });
  ends.push(() => new Promise((done) => {
    server.close(done);
    server.closeAllConnections();
  }));
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`)));
}

/** Waits until a check does not throw. */
async function until(what, check) {
  const deadline = Date.now() + LIMIT;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`${what}: ${error.message}`, { cause: error });
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

const text = (panel, selector) => panel.locator(selector).textContent();

async function useSysmon({ panel, page, at, result }) {
  await until('the figures', async () => {
    assert.equal(await text(panel, '#host'), os.hostname());
    assert.match(await text(panel, '#cpu'), /^\d+ %$/);
    assert.match(await text(panel, '#memory-more'), /^[\d.]+ [MGT]B of [\d.]+ [MGT]B$/);
    assert.match(await panel.locator('#edge').getAttribute('d'), /^M\d/);
  });
  const percent = result.structuredContent.memory_percent;
  const width = await panel.locator('#memory-bar').evaluate((bar) => bar.style.width);
  assert.ok(Math.abs(parseFloat(width) - percent) < 30, `${width}, ${percent}`);
  await until('live', async () => assert.ok((await page.evaluate((at) => said(at), at)).calls.length >= 2));
  await panel.locator('#largest').click();
  await until('processes', async () => assert.equal(await panel.locator('tbody tr').count(), 5));
  assert.ok((await page.evaluate((at) => said(at), at)).calls.includes('processes'));
  await panel.locator('#pause').click();
  assert.equal(await text(panel, '#live span'), 'paused');
  assert.equal(await text(panel, '#words'), '');
}

async function useBoard({ panel, page, at, length }) {
  assert.equal(length, readFileSync(path.join(root, 'examples/firmware/ethernet/src/panel.html'), 'utf8').length);
  assert.ok(length > 4 * 968, 'the page is several windows long');
  await until('the figures', async () => {
    assert.match(await text(panel, '#celsius'), /^-?\d+\.\d$/);
    assert.match(await text(panel, '#stack'), /^stack \d+ of \d+ bytes$/);
  });
  const isOn = () => panel.locator('#led i').evaluate((lamp) => lamp.className === 'on');
  const before = await isOn();
  await panel.locator('#led').click();
  await until('the LED', async () => assert.equal(await isOn(), !before));
  const { calls } = await page.evaluate((at) => said(at), at);
  assert.ok(calls.includes('set_led') && calls.includes('show_board'), calls.join());
  await panel.locator('#mean').click();
  await until('the mean', async () => assert.match(await text(panel, '#words'), /the mean of 10 measurements/));
}

async function tryServer(browser, name) {
  const server = SERVERS[name];
  const upstream = await server.start();
  const bundle = await build({
    entryPoints: [path.join(here, 'host.mjs')], bundle: true, format: 'iife', platform: 'browser', write: false, logLevel: 'error',
  });
  const sandbox = `${await serve({
    '/': { type: 'text/html', body: file('sandbox.html'), headers: { 'content-security-policy': POLICY } },
  })}/`;
  const host = await serve({
    '/': { type: 'text/html', body: file('host.html') },
    '/host.js': { type: 'text/javascript', body: bundle.outputFiles[0].contents },
    '/favicon.ico': { type: 'image/png', body: '' },
  }, upstream);

  const page = await browser.newPage({ viewport: { width: 1240, height: 900 } });
  page.setDefaultTimeout(LIMIT);
  const wrong = [];
  page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(error.message));
  await page.goto(host);
  const options = { tool: server.tool, question: server.question, sandbox };

  for (const revision of ['2026-07-28', '2025-11-25']) {
    const shown = await page.evaluate((options) => show(options), { ...options, revision, theme: 'light' });
    assert.deepEqual([shown.revision, shown.app.name], [revision, server.app]);
    assert.deepEqual(shown.meta, { prefersBorder: true });
    assert.equal(typeof shown.result.structuredContent, 'object');
    assert.equal(shown.result.content[0].type, 'text');
    const panel = page.frameLocator('iframe').frameLocator('iframe');
    await server.use({ page, panel, ...shown });
    ok(`${name}, ${revision}: handshake, figures, buttons`);

    const back = () => panel.locator('body').evaluate((body) => getComputedStyle(body).backgroundColor);
    const light = await back();
    await page.evaluate((at) => theme(at, 'dark'), shown.at);
    await until('the theme', async () => assert.notEqual(await back(), light));
    const frame = await page.locator('iframe').boundingBox();
    const needed = await panel.locator('html').evaluate((html) => html.scrollHeight);
    assert.ok(frame.height >= needed, `${frame.height} for ${needed}`);
    assert.deepEqual(await page.evaluate((at) => end(at), shown.at), {});
    ok(`${name}, ${revision}: theme, size, end`);

    const plain = await page.evaluate(([revision, tool]) => window.plain(revision, tool), [revision, server.tool]);
    assert.equal(plain.structuredContent, undefined);
    assert.match(plain.content[0].text, / up for /);
    ok(`${name}, ${revision}: words for a client without apps`);
  }
  assert.deepEqual(wrong, []);
  ok(`${name}: no error in the browser`);
  if (PICTURES) await takePicture(page, name, options);
  await page.close();
}

/** Both themes beside each other, with a minute of figures. */
async function takePicture(page, name, options) {
  const places = [];
  for (const theme of ['light', 'dark']) {
    places.push((await page.evaluate((options) => show(options), { ...options, revision: '2026-07-28', theme })).at);
  }
  const panels = [0, 1].map((at) => page.locator('iframe').nth(at).contentFrame().frameLocator('iframe'));
  for (let round = 0; round < 60; round += 1) {
    for (const at of places) await page.evaluate((at) => again(at), at);
    await new Promise((done) => setTimeout(done, 450));
  }
  // In one of them: a picture has less than 100 KB.
  if (name === 'sysmon') await panels[0].locator('#largest').click();
  if (name === 'ethernet') {
    await panels[0].locator('#led').click();
    for (const at of places) await page.evaluate((at) => again(at), at);
  }
  await page.mouse.move(0, 0);
  await new Promise((done) => setTimeout(done, 2500));
  await page.locator('body').screenshot({ path: path.join(root, `docs/apps-${name}.png`) });
}

const profile = mkdtempSync(path.join(os.tmpdir(), 'apps-'));
let failed = false;
async function leave() {
  for (const end of ends.splice(0).reverse()) await end();
  rmSync(profile, { recursive: true, force: true });
  process.exit(failed ? 1 : 0);
}
process.on('SIGTERM', () => {
  console.error('apps: took too long');
  failed = true;
  leave();
});
try {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM,
    headless: true,
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync',
    ],
  });
  ends.push(() => context.close());
  for (const name of wanted) await tryServer(context, name);
  console.log(`apps: ${checks} passed`);
} catch (error) {
  console.error(error);
  failed = true;
}
await leave();
