/** What the lab tells its MCP server, and the files by which they talk. */

export interface ServerPlan {
  /** The URL of the payments service. */
  readonly payments: string;
  readonly dir: string;
  /** It serves streamable HTTP there. Default: it speaks over its standard input and output. */
  readonly port?: number;
  /** Where each call waits until {@link GO} is there. */
  readonly holdAt?: 'gap' | 'landed';
  /** What the first call of each tag is told: that it is done, though it is not, or the other way round. */
  readonly lie?: 'done' | 'not-done';
}

/** What the lab tells the agent of the server, too. */
export interface AgentPlan extends ServerPlan {
  /** The program of the server. */
  readonly program: string;
  readonly timeout: `${number}ms`;
  readonly settle: `${number}ms`;
}

/** Where a server is that serves over HTTP. */
export function urlOf(port: number): string {
  return `http://127.0.0.1:${port}/mcp`;
}

/** The fault is over. */
export const GO = 'go';
/** A server that starts now has other tools. */
export const CHANGED = 'changed';

/** The file that has the process id of the server that did wrong on a call. */
export function markOf(tag: string): string {
  return `call-${encodeURIComponent(tag)}`;
}
