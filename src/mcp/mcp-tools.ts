/** Makes the tools of an MCP server tools of an agent, and guards their effects. */
import type { CallToolResult, Tool, Transport } from '@modelcontextprotocol/client';
import { type FlexibleSchema, jsonSchema } from 'ai';
import {
  type DefinedTool,
  defineTool,
  NotAttemptedError,
  type ToolOptions,
  type Verification,
} from '../agent/index.ts';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { digestJson, type JsonObject, type JsonValue, toJson } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import type { Effect } from '../contract/manifest.ts';
import { McpConnection } from './connection.ts';
import { UnsupportedRequest } from './questions.ts';

/** How an agent uses one of the server's tools. */
export interface McpToolOptions
  extends Partial<
    Pick<
      ToolOptions<JsonObject, JsonValue, unknown>,
      | 'description'
      | 'effect'
      | 'idempotency'
      | 'needsApproval'
      | 'approval'
      | 'timeout'
      | 'settle'
      | 'maxAttempts'
      | 'verify'
    >
  > {
  /** The name that the model gets. Default: the server's, after `prefix`. */
  as?: string;
  /**
   * Asks `verify` after each answer of the server, which may be wrong. If the server reports an error and `verify`
   * finds the effect, the call is done. If the server reports success and `verify` does not find the effect, the call
   * is *unknown*. Default: false.
   */
  confirm?: boolean;
}

/** Options of {@link mcpTools}. */
export interface McpToolsOptions {
  /** The server's name in errors and questions. */
  name: string;
  /**
   * Makes a transport of `@modelcontextprotocol/client`, with its credentials: over HTTP, or to a process. It is called
   * for each connection: at the start, and after a loss.
   */
  transport: () => Transport;
  /**
   * Whether the server's hints count: then `readOnlyHint` makes a tool a `read`, and `idempotentHint` an `idempotent`
   * one. Default: false. Every tool is a `mutate` unless `tools` says otherwise.
   */
  trusted?: boolean;
  /** Options by the server's name of a tool: what the tool does, how it is verified, who approves it. */
  tools?: Readonly<Record<string, McpToolOptions>>;
  /** The tools to take. Default: all. */
  only?: readonly string[];
  /**
   * The digest of the tools' names, descriptions and schemas that a person has read. If the server has other ones,
   * `mcpTools` throws an error with all of them and their digest. Default: no check.
   */
  digest?: string;
  /** Goes before each name, so that two servers can have tools of the same name. */
  prefix?: string;
}

/** The most tools of one server that an agent takes. Each prompt holds all of them. */
const MOST_TOOLS = 128;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** Error codes after which nothing ran: invalid request, unknown tool, bad arguments, missing capability or visit. */
const REFUSALS: ReadonlySet<number> = new Set([-32_600, -32_601, -32_602, -32_021, -32_042]);

/**
 * Connects to an MCP server, and returns its tools for an agent, by name. Needs the optional package
 * `@modelcontextprotocol/client`. A lost connection is opened again. An error that the server reports is the tool's
 * result. If the server dies during a mutation, the call is *unknown*: `verify` or a person decides. A changed list of
 * tools counts from the worker's next start.
 *
 * @throws PerdureError `INVALID_DEFINITION` naming the field, and when the server cannot be reached
 * @example
 * ```ts
 * import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
 * import { defineAgent } from 'perdure';
 * import { mcpTools } from 'perdure/mcp';
 *
 * const url = new URL('https://tickets.example/mcp');
 * const tickets = await mcpTools({
 *   name: 'tickets',
 *   transport: () => new StreamableHTTPClientTransport(url),
 *   tools: {
 *     search: { effect: 'read' },
 *     close_ticket: { effect: 'mutate', idempotency: { scope: 'session' }, needsApproval: true },
 *   },
 * });
 * export const desk = defineAgent({
 *   name: 'desk',
 *   model: 'openai:gpt-5',
 *   instructions: 'Help with tickets.',
 *   tools: { ...tickets },
 * });
 * ```
 */
export async function mcpTools(options: McpToolsOptions): Promise<Record<string, DefinedTool>> {
  const { name, tools: own = {}, only, prefix = '' } = options;
  const connection = new McpConnection(`MCP server ${name}`, options.transport);
  const listed = await connection.tools().catch((error: unknown) => {
    throw invalid(name, `the server cannot be reached: ${messageOf(error)}`, error);
  });
  const known = new Set(listed.map((tool) => tool.name));
  for (const [field, names] of [
    ['only', only ?? []],
    ['tools', Object.keys(own)],
  ] as const) {
    const unknown = names.find((tool) => !known.has(tool));
    if (unknown !== undefined)
      throw invalid(name, `${field}.${unknown} is not a tool of the server. Its tools: ${listOf(known)}`);
  }
  const taken = only === undefined ? listed : listed.filter((tool) => only.includes(tool.name));
  if (taken.length > MOST_TOOLS)
    throw invalid(name, `the server has ${taken.length} tools, and each prompt holds all: name some in only`);
  checkRead(name, taken, options.digest);
  const made: Record<string, DefinedTool> = {};
  for (const tool of taken) {
    const given = Object.hasOwn(own, tool.name) ? own[tool.name] : undefined;
    const as = given?.as ?? prefix + tool.name;
    if (!NAME.test(as) || as === '__proto__')
      throw invalid(
        name,
        `tools.${tool.name}: ${as} is no name for a tool: set as to letters, digits, - and _`,
      );
    if (Object.hasOwn(made, as)) throw invalid(name, `tools.${tool.name}: two tools are named ${as}: set as`);
    if (given?.confirm === true && given.verify === undefined)
      throw invalid(name, `tools.${tool.name}.confirm: set verify, too. It confirms the answers`);
    made[as] = toolOf(connection, tool, given ?? {}, options.trusted === true) as DefinedTool;
  }
  return made;
}

/** Refuses tools that nobody has read: the server's descriptions go into each prompt. */
function checkRead(name: string, taken: readonly Tool[], read: string | undefined): void {
  if (read === undefined) return;
  const tools = taken.map(({ name: tool, title = null, description = null, inputSchema }) =>
    toJson({ name: tool, title, description, inputSchema }),
  );
  const digest = shortDigest(digestJson(tools));
  if (digest === read) return;
  const texts = taken.map(({ name: tool, title = '', description = '' }) =>
    // Invisible characters may hold instructions.
    `${tool}: ${title} ${description}`.replace(
      /\p{C}/gu,
      (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`,
    ),
  );
  throw new PerdureError(
    'INVALID_DEFINITION',
    `MCP server ${name}: it has tools that nobody has read. Read them, and their schemas in details.tools. ` +
      `Then write digest: '${digest}'\n${texts.join('\n')}`,
    { details: { digest, tools } },
  );
}

function toolOf(
  connection: McpConnection,
  tool: Tool,
  {
    as: _as,
    confirm = false,
    description = tool.description ?? tool.title ?? tool.name,
    // By default no two calls are equal, because nobody has said which ones are.
    idempotency = { scope: 'call' },
    ...given
  }: McpToolOptions,
  trusted: boolean,
): DefinedTool<JsonObject, JsonValue> {
  const effect = given.effect ?? (trusted ? hinted(tool) : 'mutate');
  return defineTool<JsonObject, JsonValue>({
    description,
    // The server checks the arguments.
    inputSchema: jsonSchema<JsonObject>(tool.inputSchema as object) as FlexibleSchema<JsonObject>,
    idempotency,
    ...given,
    effect,
    execute: async (input, context) => {
      const { abortSignal, fence, answers } = context;
      const client = await connection.client().catch((error: unknown) => {
        throw new NotAttemptedError(`the server cannot be reached: ${messageOf(error)}`, { cause: error });
      });
      if (effect === 'mutate') await fence();
      const options = { signal: abortSignal, answers, mayRepeat: effect !== 'mutate' };
      const result = await client.call(tool, input, options).then(
        (answer) => withDeclined(answer.result, answer.declined),
        (error: unknown): CallToolResult => {
          const refusal = refusalOf(error);
          if (refusal === null) throw error;
          return { isError: true, content: [{ type: 'text', text: refusal }] };
        },
      );
      const output = outputOf(result);
      if (!confirm || given.verify === undefined) return output;
      return confirmed(output, result.isError === true, await given.verify(input, context));
    },
    toModelOutput: ({ output }) => modelOutput(output),
  });
}

/** @throws Error when `verify` contradicts the server or cannot tell: the call is then unknown */
function confirmed(output: JsonValue, isError: boolean, found: Verification<JsonValue>): JsonValue {
  if (found.outcome === 'landed') return isError ? (found.output ?? null) : output;
  if (found.outcome === 'absent' && isError) return output;
  throw new Error(
    `the server says that it is ${isError ? 'not done' : 'done'}, and verify says ${found.outcome}`,
  );
}

function hinted({ annotations }: Tool): Effect {
  if (annotations?.readOnlyHint === true) return 'read';
  return annotations?.idempotentHint === true ? 'idempotent' : 'mutate';
}

/** Adds the questions that the server has asked in vain to its result. */
function withDeclined(result: CallToolResult, declined: readonly string[]): CallToolResult {
  if (declined.length === 0) return result;
  const { structuredContent: _, ...rest } = result;
  const text = `[declined] The server asked: ${declined.join('; ')}. Nobody can answer in the middle of this call.`;
  return { ...rest, content: [{ type: 'text', text }, ...result.content] };
}

/** What the server answered: a value, a text, or parts with files. */
function outputOf({ content, structuredContent, isError }: CallToolResult): JsonValue {
  const isText = content.every(({ type }) => type === 'text');
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  if (isError === true) return { isError: true, text };
  if (structuredContent !== undefined) return toJson(structuredContent);
  return isText ? text : toJson({ content });
}

type ModelOutput = Awaited<ReturnType<NonNullable<ToolOptions<JsonObject, JsonValue>['toModelOutput']>>>;

function modelOutput(output: JsonValue): ModelOutput {
  if (typeof output === 'string') return { type: 'text', value: output };
  if (typeof output === 'object' && output !== null && !Array.isArray(output)) {
    const { isError, text, content } = output as { isError?: unknown; text?: unknown; content?: unknown };
    if (isError === true) return { type: 'error-text', value: String(text) };
    if (Array.isArray(content) && Object.keys(output).length === 1)
      return { type: 'content', value: content.map(modelPart) };
  }
  return { type: 'json', value: output };
}

function modelPart(
  part: CallToolResult['content'][number],
): Extract<ModelOutput, { type: 'content' }>['value'][number] {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image':
      return { type: 'image-data', data: part.data, mediaType: part.mimeType };
    case 'audio':
      return { type: 'file-data', data: part.data, mediaType: part.mimeType };
    default:
      return { type: 'text', text: JSON.stringify(part) };
  }
}

/** The message of an error that means that the tool certainly has not run, or `null`. */
function refusalOf(error: unknown): string | null {
  const { code } = error as { code?: unknown };
  if (error instanceof UnsupportedRequest) return error.message;
  return typeof code === 'number' && REFUSALS.has(code) ? messageOf(error) : null;
}

function listOf(names: ReadonlySet<string>): string {
  return [...names].slice(0, 40).join(', ') || 'none';
}

function invalid(name: string, problem: string, cause?: unknown): PerdureError {
  return new PerdureError('INVALID_DEFINITION', `MCP server ${name}: ${problem}`, { cause });
}
