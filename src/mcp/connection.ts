/** A connection to an MCP server, which is opened on demand and again after a loss. */
import type * as mcp from '@modelcontextprotocol/client';
import type {
  CallToolResult,
  Client,
  ElicitRequest,
  ElicitResult,
  InputRequiredResult,
  Tool,
  Transport,
} from '@modelcontextprotocol/client';
import packageJson from 'perdure/package.json' with { type: 'json' };
import { QuestionError } from '../agent/index.ts';
import type { ToolAnswer } from '../contract/calls.ts';
import { messageOf, PerdureError } from '../contract/errors.ts';
import type { JsonObject } from '../contract/json.ts';
import { continuationOf, oldAnswerTo, oldQuestionOf, questionOf, UnsupportedRequest } from './questions.ts';

/** How long a server may take to answer when a connection opens, in milliseconds. */
const OPEN_MS = 20_000;
/** In effect no time-out: the tool's own time-out ends a call, through its signal. */
const CALL_MS = 2_000_000_000;

interface CallOptions {
  signal: AbortSignal;
  /** What people have answered to the server's questions in this call. */
  answers: readonly ToolAnswer[];
  /** Whether the call may run again after it has begun. If so, a person can answer what the server asks meanwhile. */
  mayRepeat: boolean;
}

/** How often a server may ask to be called again without a question. */
const MOST_ROUNDS = 5;

/** An open connection. */
interface OpenConnection {
  /**
   * @returns the server's result. `declined`: the questions that it asked meanwhile, and that nobody answered
   * @throws QuestionError when the server asks a person
   */
  call(
    tool: Tool,
    input: JsonObject,
    options: CallOptions,
  ): Promise<{ result: CallToolResult; declined: string[] }>;
}

/** A call that is running. Servers of older protocols ask their questions meanwhile. */
interface CallUnderWay extends CallOptions {
  client: Client;
  asked: QuestionError | null;
  declined: string[];
}

export class McpConnection {
  readonly #name: string;
  readonly #transport: () => Transport;
  readonly #calls = new Set<CallUnderWay>();
  /** Clients that take no more calls, and close when their calls have ended. */
  readonly #retired = new Set<Client>();
  #open: Promise<Client> | null = null;

  /** @param name - the server's name, for the people whom it asks */
  constructor(name: string, transport: () => Transport) {
    this.#name = name;
    this.#transport = transport;
  }

  async tools(): Promise<Tool[]> {
    const client = await this.#connected();
    const { tools } = await client.listTools(undefined, { timeout: OPEN_MS });
    // With an output schema, the SDK could refuse the result of a call that has taken effect.
    return tools.map(({ outputSchema: _outputSchema, ...tool }) => tool);
  }

  async client(): Promise<OpenConnection> {
    const client = await this.#connected();
    return {
      call: async (tool, input, options) => {
        const call: CallUnderWay = { ...options, client, asked: null, declined: [] };
        this.#calls.add(call);
        try {
          const isOld = client.getProtocolEra() === 'legacy';
          let more: { requestState?: string } = isOld ? {} : continuationOf(options.answers);
          for (let round = 1; ; round++) {
            const result = await client.callTool(
              { name: tool.name, arguments: input, ...more },
              {
                signal: options.signal,
                timeout: CALL_MS,
                allowInputRequired: true,
                // With a definition, the SDK sends the call only once.
                toolDefinition: tool,
              },
            );
            if (call.asked !== null) throw call.asked;
            if (!isInputRequired(result)) return { result, declined: call.declined };
            const { inputRequests = {}, requestState } = result;
            if (Object.keys(inputRequests).length > 0) throw questionOf(this.#name, result);
            if (requestState === undefined || round >= MOST_ROUNDS)
              throw new UnsupportedRequest('The server asks to be called again, and says not why.');
            more = { requestState };
          }
        } catch (error) {
          if (call.asked !== null) throw call.asked;
          if (error instanceof QuestionError || error instanceof UnsupportedRequest) throw error;
          // An error from the server has a numeric code. After any other error, the next call gets a fresh connection.
          if (typeof (error as { code?: unknown }).code !== 'number') this.#drop(client, !options.mayRepeat);
          throw error;
        } finally {
          this.#calls.delete(call);
          if (this.#retired.has(client) && this.#callsOf(client).length === 0) this.#close(client);
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
      {
        versionNegotiation: { mode: 'auto' },
        capabilities: { elicitation: { form: {}, url: {} } },
        // Otherwise the SDK would send the call again after a question of the server.
        inputRequired: { autoFulfill: false },
      },
    );
    client.setRequestHandler('elicitation/create', ({ params }) => this.#answer(client, params));
    client.onclose = () => this.#drop(client, true);
    await client.connect(this.#transport(), { timeout: OPEN_MS });
    return client;
  }

  /**
   * Answers a server of an older protocol, which asks while a call runs. No person answers in that time, so the call is
   * given up, and runs again with the answer. A mutation must not run again, so its question is declined.
   */
  #answer(client: Client, params: ElicitRequest['params']): ElicitResult {
    const calls = this.#callsOf(client);
    const [call, ...others] = calls;
    // The question does not say which call it is about.
    const isClear = call !== undefined && others.length === 0;
    const known = isClear ? oldAnswerTo(params, call.answers) : undefined;
    if (known !== undefined) return known;
    if (isClear && call.mayRepeat) {
      call.asked = oldQuestionOf(this.#name, params);
      return { action: 'cancel' };
    }
    for (const each of calls) each.declined.push(params.message);
    return { action: 'decline' };
  }

  #callsOf(client: Client): CallUnderWay[] {
    return [...this.#calls].filter((call) => call.client === client);
  }

  /**
   * Gives the next call a fresh connection. After a lost mutation this connection closes at once, so that a frozen
   * server cannot wake up and go on. Otherwise it closes when its calls have ended.
   */
  #drop(client: Client, atOnce: boolean): void {
    const open = this.#open;
    void open?.then(
      (current) => {
        if (current === client && this.#open === open) this.#open = null;
      },
      () => undefined,
    );
    if (atOnce) this.#close(client);
    else this.#retired.add(client);
  }

  #close(client: Client): void {
    this.#retired.delete(client);
    client.close().catch(() => undefined);
  }
}

function isInputRequired(result: object): result is InputRequiredResult {
  return (result as { resultType?: unknown }).resultType === 'input_required';
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
