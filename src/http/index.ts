export { createHttpApi, type HttpApi } from './app.ts';
export { hostsOf, serveHttp } from './serve.ts';
