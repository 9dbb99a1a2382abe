/** What the lab tells its MCP server, and the files through which they communicate. */

export interface ServerPlan {
  /** The URL of the payments service. */
  readonly payments: string;
  readonly dir: string;
  /** The port for streamable HTTP. Default: the server uses its standard input and output. */
  readonly port?: number;
  /** The step at which each call waits until the file {@link GO} exists. */
  readonly holdAt?: 'gap' | 'landed';
  /** The lie to the first call of each tag: that it is done although it is not, or the other way round. */
  readonly lie?: 'done' | 'not-done';
}

/** What the lab tells the agent of the server, too. */
export interface AgentPlan extends ServerPlan {
  /** The program of the server. */
  readonly program: string;
  readonly timeout: `${number}ms`;
  readonly settle: `${number}ms`;
}

/** The URL of a server that serves over HTTP. */
export function urlOf(port: number): string {
  return `http://127.0.0.1:${port}/mcp`;
}

/** The fault is over. */
export const GO = 'go';
/** A server that starts now has other tools. */
export const CHANGED = 'changed';

/** The name of the file with the process id of the server that misbehaved on a call. */
export function markOf(tag: string): string {
  return `call-${encodeURIComponent(tag)}`;
}
