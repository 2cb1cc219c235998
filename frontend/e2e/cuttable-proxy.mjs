// A TCP proxy between the browser and the API whose connections can be cut: those that exist are closed and new ones
// are refused until they are restored.
import { connect, createServer } from "node:net";

export async function cuttableProxy(target) {
  const sockets = new Set();
  let isCut = false;
  let reconnectedAt = 0;
  const server = createServer((client) => {
    if (isCut) return client.destroy();
    const upstream = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ]) {
      sockets.add(from);
      from.setNoDelay(true);
      // A connection that was cut ends with an error, which is what it is for.
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
    client.on("data", (bytes) => {
      if (bytes.includes("GET /api/v1/events")) reconnectedAt = Date.now();
    });
  });
  await new Promise((resolve) => server.listen(0, target.hostname, resolve));
  return {
    address: `http://${target.hostname}:${server.address().port}`,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    restore() {
      isCut = false;
    },
    /** When the browser last asked for events, in milliseconds since 1970. */
    reconnectedAt: () => reconnectedAt,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
