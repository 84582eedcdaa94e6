// Serves files below a directory as small servers on npm do: one process, a look at the file, a stream.
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const [root, port] = [process.argv[2], Number(process.argv[3])];

http.createServer((request, answer) => {
  const refuse = (status) => {
    answer.writeHead(status, { 'Content-Length': 0 });
    answer.end();
  };
  let name;
  try {
    name = path.join(root, path.posix.normalize('/' + decodeURIComponent(request.url.split('?')[0])));
  } catch {
    return refuse(400);
  }
  fs.stat(name, (error, found) => {
    if (error || !found.isFile()) return refuse(404);
    answer.writeHead(200, {
      'Content-Type': 'application/octet-stream',
      'Content-Length': found.size,
      'Last-Modified': found.mtime.toUTCString(),
    });
    const file = fs.createReadStream(name);
    file.on('error', () => answer.destroy());
    file.pipe(answer);
  });
}).listen(port, '127.0.0.1');
