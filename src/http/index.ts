export { createHttpApi, type HttpApi, type HttpApiOptions } from './app.ts';
export { type HttpServer, hostsOf, serveHttp } from './serve.ts';
