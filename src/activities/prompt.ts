/** Converts the transcript to a language model's prompt, and the manifest's tools to its tools. */
import type { LanguageModelV3FunctionTool, LanguageModelV3Message } from '@ai-sdk/provider';
import { ANTHROPIC } from '../agent/index.ts';
import { type JsonValue, sha256Hex } from '../contract/json.ts';
import type { Manifest } from '../contract/manifest.ts';
import type { Block, Message } from '../contract/messages.ts';
import { PLAN_DESCRIPTION, PLAN_SCHEMA, PLAN_TOOL } from '../contract/plan.ts';
import { type Files, filePart, hasStoredFiles, NO_FILES, withFiles } from './files.ts';

type Part<ROLE extends LanguageModelV3Message['role']> = Exclude<
  Extract<LanguageModelV3Message, { role: ROLE }>['content'],
  string
>[number];

/**
 * Converts messages for the AI SDK's models. Metadata that providers need back becomes provider options. Empty messages
 * are left out, except the user's: the model answers the last message, so it must exist.
 *
 * For a prompt that continues an earlier one, only the new messages are converted. The caller may change the returned
 * prompt.
 */
export function toPrompt(messages: readonly Message[], files: Files = NO_FILES): LanguageModelV3Message[] {
  return conversionOf(messages).prompt(messages, files);
}

/** The messages that refer to stored files, which {@link toPrompt} needs. */
export function messagesWithFiles(messages: readonly Message[]): Message[] {
  const { length, withFiles: found } = conversionOf(messages);
  return [...found, ...messages.slice(length).filter(hasStoredFiles)];
}

/** Keyed by the prompt's first message, so a conversion is freed once the transcript memory drops the messages. */
const conversions = new WeakMap<Message, Conversion>();

function conversionOf(messages: readonly Message[]): Conversion {
  const [first] = messages;
  let conversion = first && conversions.get(first);
  if (conversion === undefined || !conversion.isBeginningOf(messages)) {
    conversion = new Conversion();
    if (first !== undefined) conversions.set(first, conversion);
  }
  conversion.extend(messages);
  return conversion;
}

/**
 * Caches the conversion of a prompt's recorded messages. Messages are never changed in place, so the same objects in
 * the same order have the same conversion. Messages without an id are not recorded yet, so they are not cached. Neither
 * are messages with stored files, because a file can be removed.
 */
class Conversion {
  readonly #messages: Message[] = [];
  readonly #converted: (LanguageModelV3Message[] | null)[] = [];
  readonly #idOf = providerIds();
  readonly withFiles: Message[] = [];

  get length(): number {
    return this.#messages.length;
  }

  isBeginningOf(messages: readonly Message[]): boolean {
    return this.#messages.every((message, i) => message === messages[i]);
  }

  extend(messages: readonly Message[]): void {
    for (const message of messages.slice(this.length)) {
      if (message.id === '') return;
      // Convert a message with files too, though it is not cached: its call ids must be shortened in their order.
      const converted = promptMessages(message, this.#idOf, NO_FILES);
      const stored = hasStoredFiles(message);
      if (stored) this.withFiles.push(message);
      this.#messages.push(message);
      this.#converted.push(stored ? null : converted);
    }
  }

  prompt(messages: readonly Message[], files: Files): LanguageModelV3Message[] {
    const prompt: LanguageModelV3Message[] = [];
    for (const [i, message] of messages.entries()) {
      const kept = this.#converted[i];
      if (kept) for (const one of kept) prompt.push(copyOf(one));
      else prompt.push(...promptMessages(message, this.#idOf, files));
    }
    return prompt;
  }
}

/** Copies a message, because middleware may change a prompt in place. */
function copyOf<MESSAGE extends LanguageModelV3Message>(message: MESSAGE): MESSAGE {
  const { content } = message;
  return typeof content === 'string'
    ? message
    : { ...message, content: content.map((part) => ({ ...part })) };
}

function promptMessages(
  message: Message,
  idOf: (id: string) => string,
  files: Files,
): LanguageModelV3Message[] {
  const blocks = message.blocks.filter(isSaid);
  switch (message.role) {
    case 'user': {
      const content = blocks.flatMap((b) =>
        b.kind === 'text'
          ? [{ type: 'text' as const, text: b.text }]
          : b.kind === 'file'
            ? [filePart(b, files)]
            : [],
      );
      return [
        { role: 'user', content: content.length > 0 ? content : [{ type: 'text', text: NOTHING_SAID }] },
      ];
    }
    case 'assistant': {
      const content = blocks.flatMap((block) => assistantPart(block, idOf, files));
      return content.length > 0 ? [{ role: 'assistant', content }] : [];
    }
    case 'tool': {
      const content = blocks.flatMap((block) => toolPart(block, idOf, files));
      return content.length > 0 ? [{ role: 'tool', content }] : [];
    }
    default:
      return message.role satisfies never;
  }
}

type ToolOutput = Extract<Part<'tool'>, { type: 'tool-result' }>['output'];

const NOTHING_SAID = '(an empty message)';

/** Anthropic refuses blank texts. A blank text with metadata stays: its provider wants it back. */
function isSaid(block: Block): boolean {
  return block.kind !== 'text' || block.metadata !== undefined || block.text.trim() !== '';
}

/**
 * Shortens the ids of a prompt's calls: Mistral accepts only nine letters and digits. An id is the same in each prompt
 * of a growing transcript, so that the provider's prompt cache stays useful.
 */
function providerIds(): (id: string) => string {
  const known = new Map<string, string>();
  const taken = new Set<string>();
  return (id) => {
    let short = known.get(id);
    for (let salt = ''; short === undefined; salt += '+') {
      const next = shortOf(id + salt);
      if (!taken.has(next)) short = next;
    }
    known.set(id, short);
    taken.add(short);
    return short;
  };
}

function shortOf(id: string): string {
  return sha256Hex(id).slice(0, 9);
}

function assistantPart(block: Block, idOf: (id: string) => string, files: Files): Part<'assistant'>[] {
  const options =
    'metadata' in block && block.metadata !== undefined ? { providerOptions: block.metadata as never } : {};
  switch (block.kind) {
    case 'text':
      return [{ type: 'text', text: block.text, ...options }];
    case 'reasoning':
      return [{ type: 'reasoning', text: block.text, ...options }];
    case 'tool_call':
      return [
        {
          type: 'tool-call',
          toolCallId: idOf(block.id),
          toolName: block.name,
          input: asInput(block.args),
          ...options,
        },
      ];
    case 'file':
      return [filePart(block, files)];
    case 'source':
    case 'tool_result':
      return [];
    default:
      return block satisfies never;
  }
}

/** Replaces arguments that are not an object: providers refuse them. The call's result says what was wrong. */
function asInput(args: JsonValue): JsonValue {
  return typeof args === 'object' && args !== null && !Array.isArray(args) ? args : {};
}

function toolPart(block: Block, idOf: (id: string) => string, files: Files): Part<'tool'>[] {
  if (block.kind !== 'tool_result') return [];
  const { call_id: id, name: toolName, content, is_error: isError } = block;
  // Recorded as `toModelOutput` returned it.
  if (block.model_output !== undefined) {
    const output = withFiles(block.model_output, files) as unknown as ToolOutput;
    return [{ type: 'tool-result', toolCallId: idOf(id), toolName, output }];
  }
  const output =
    typeof content === 'string'
      ? { type: isError ? ('error-text' as const) : ('text' as const), value: content }
      : { type: isError ? ('error-json' as const) : ('json' as const), value: content };
  return [{ type: 'tool-result', toolCallId: idOf(id), toolName, output }];
}

/** Whether an agent's provider options configure Anthropic's cache. */
export function setsOwnCache(options: Readonly<Record<string, object>> = {}): boolean {
  return 'cacheControl' in (options['anthropic'] ?? {});
}

/**
 * Marks messages for Anthropic, which caches a prompt only up to a marked message: the instructions with the tools, the
 * end of the last prompt, and the end of this prompt. Other providers find the common beginning by themselves.
 */
export function withBreakpoints(
  prompt: readonly LanguageModelV3Message[],
  { provider, specificationVersion }: { provider: string; specificationVersion: string },
): LanguageModelV3Message[] {
  // Clients of specification v2 do not count cached tokens as input, so a cap would not see them.
  if (!ANTHROPIC.test(provider) || specificationVersion !== 'v3') return [...prompt];
  const marked = new Set([
    0,
    prompt.findLastIndex(({ role }) => role === 'assistant') - 1,
    prompt.length - 1,
  ]);
  const providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } };
  return prompt.map((message, i) => (marked.has(i) ? { ...message, providerOptions } : message));
}

/** The tools without `execute`: the session checks calls against the tool's own schema and runs them. */
export function toTools(manifest: Manifest): LanguageModelV3FunctionTool[] {
  const tools = Object.values(manifest.tools).map(({ name, description, inputSchema }) =>
    functionTool(name, description, inputSchema),
  );
  if (manifest.plan) tools.push(functionTool(PLAN_TOOL, PLAN_DESCRIPTION, PLAN_SCHEMA));
  return tools;
}

function functionTool(
  name: string,
  description: string,
  inputSchema: LanguageModelV3FunctionTool['inputSchema'],
): LanguageModelV3FunctionTool {
  return { type: 'function', name, description, inputSchema };
}
