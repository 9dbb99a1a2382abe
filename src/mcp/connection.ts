/** A connection to an MCP server, which is opened on demand and again after a loss. */
import type * as mcp from '@modelcontextprotocol/client';
import type { CallToolResult, Client, Tool, Transport } from '@modelcontextprotocol/client';
import packageJson from 'perdure/package.json' with { type: 'json' };
import { messageOf, PerdureError } from '../contract/errors.ts';
import type { JsonObject } from '../contract/json.ts';

/** How long a server may take to answer when a connection opens, in milliseconds. */
const OPEN_MS = 20_000;
/** The tool's own time-out ends a call, through its signal. */
const CALL_MS = 2_000_000_000;

/** An open connection. */
interface OpenConnection {
  call(tool: Tool, input: JsonObject, signal: AbortSignal): Promise<CallToolResult>;
}

export class McpConnection {
  readonly #transport: () => Transport;
  #open: Promise<Client> | null = null;

  constructor(transport: () => Transport) {
    this.#transport = transport;
  }

  async tools(): Promise<Tool[]> {
    const client = await this.#connected();
    return (await client.listTools(undefined, { timeout: OPEN_MS })).tools;
  }

  async client(): Promise<OpenConnection> {
    const client = await this.#connected();
    return {
      call: async (tool, input, signal) => {
        try {
          return await client.callTool(
            { name: tool.name, arguments: input },
            // With a definition the SDK sends a call once, and without the schema of its output it does not refuse what was done.
            { signal, timeout: CALL_MS, toolDefinition: withoutOutputSchema(tool) },
          );
        } catch (error) {
          // An answer of the server has a number. Whatever else has happened, the next call gets a fresh connection.
          if (typeof (error as { code?: unknown }).code !== 'number') this.#drop(client);
          throw error;
        }
      },
    };
  }

  #connected(): Promise<Client> {
    this.#open ??= this.#connect().catch((error: unknown) => {
      this.#open = null;
      throw error;
    });
    return this.#open;
  }

  async #connect(): Promise<Client> {
    const { Client } = await loaded();
    const client = new Client(
      { name: 'perdure', version: packageJson.version },
      // A question of the server would make the SDK send the call again.
      { versionNegotiation: { mode: 'auto' }, inputRequired: { autoFulfill: false } },
    );
    client.onclose = () => this.#drop(client);
    await client.connect(this.#transport(), { timeout: OPEN_MS });
    return client;
  }

  #drop(client: Client): void {
    const open = this.#open;
    if (open === null) return;
    void open.then(
      (current) => {
        if (current !== client) return;
        if (this.#open === open) this.#open = null;
        client.close().catch(() => undefined);
      },
      () => undefined,
    );
  }
}

function withoutOutputSchema({ outputSchema: _outputSchema, ...tool }: Tool): Tool {
  return tool;
}

async function loaded(): Promise<typeof mcp> {
  try {
    return await import('@modelcontextprotocol/client');
  } catch (cause) {
    throw new PerdureError(
      'INVALID_DEFINITION',
      `the package @modelcontextprotocol/client could not be loaded: ${messageOf(cause)}. Install it with npm install @modelcontextprotocol/client`,
      { cause },
    );
  }
}
