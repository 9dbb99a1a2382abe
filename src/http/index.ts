/** `perdure/http`: sessions over HTTP, as a handler `Request -> Response` or a server. */
export { createHttpApi, type HttpApi, type HttpApiOptions } from './app.ts';
export type { Backend, ServedSaver } from './operation.ts';
export { type HttpServer, hostsOf, serveHttp } from './serve.ts';
