// Servers of tests listen on loopback only, whatever they ask for, and say on which port.
const { Server } = require("node:net");

const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
  this.once("listening", () => console.error(`loopback port ${this.address().port}`));
  return listen.call(this, Number(port), "127.0.0.1", ...rest);
};
