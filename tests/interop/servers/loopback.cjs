// For servers that listen everywhere and cannot be told otherwise: they listen on 127.0.0.1.
const { Server } = require('node:net');
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  const plain = typeof port === 'number' || typeof port === 'string';
  return plain && typeof rest[0] !== 'string' ? listen.call(this, port, '127.0.0.1', ...rest) : listen.call(this, port, ...rest);
};
