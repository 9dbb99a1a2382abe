/** `perdure/http`: sessions over HTTP, as a handler `Request -> Response` or a server. */
export type { Action, Authorize } from './access.ts';
export { createHttpApi, type HttpApi, type HttpApiOptions } from './app.ts';
export type { JwtOptions } from './jwt.ts';
export type { Backend, ServedSaver } from './operation.ts';
export type { Principal, Role, TokenOptions } from './principal.ts';
export { type HttpServer, hostsOf, serveHttp } from './serve.ts';
