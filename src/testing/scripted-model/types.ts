/** Requests and replies of a scripted model: plain data and functions, no I/O. */

/** A tool call inside a message that the client sent back. */
export interface ChatToolCall {
  readonly id: string;
  readonly name: string;
  /** The parsed arguments, or the raw string if they are not JSON. */
  readonly args: unknown;
}

/** One message of the request, with its content flattened to text. */
export interface ChatMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  /** All text parts, joined. Empty when there is none. */
  readonly text: string;
  /** The `reasoning_content` that the client sent back. */
  readonly reasoning?: string;
  /** Only an assistant message has any. */
  readonly toolCalls: readonly ChatToolCall[];
  /** Only a tool message has one: the call that it answers. */
  readonly toolCallId?: string;
}

/** A tool that the client offers. */
export interface ChatTool {
  readonly name: string;
  readonly description?: string;
  /** JSON schema of the arguments, as sent. */
  readonly parameters: unknown;
}

/** A tool result in the transcript, with the call that it answers. */
export interface ChatToolResult {
  readonly callId: string;
  readonly toolName: string;
  readonly text: string;
  /** The text parsed as JSON, or the text itself if it is not JSON. */
  readonly value: unknown;
}

/** One parsed model call. A script decides from this alone, so that a repeated call gets the same reply. */
export interface ScriptedRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ChatTool[];
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body as it came over the wire. */
  readonly body: Readonly<Record<string, unknown>>;
  /** SHA-256 (hex) of the canonical JSON of the messages. */
  readonly digest: string;
  /** Text of the last user message. Empty when there is none. */
  readonly lastUserText: string;
  /** All tool results so far, oldest first. */
  readonly toolResults: readonly ChatToolResult[];
  /** Number of assistant messages since the start: the position of this call in the conversation. */
  readonly assistantCount: number;
  /** Number of assistant messages after the last user message: the step of this call within its turn. */
  readonly stepInTurn: number;
  /**
   * How often the same model was asked with exactly these messages before: 0 the first time. Only this field depends on
   * the past (with a `recordFile` it survives a restart of the endpoint). Use it for passing faults, such as "429
   * twice, then the reply".
   */
  readonly repeat: number;
}

/** Why the model stopped, as the protocol names it. */
export type ReplyFinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** A tool call that the model makes. */
export interface ReplyToolCall {
  readonly name: string;
  /** Plain JSON. */
  readonly args: unknown;
  /** Default: derived from the digest of the messages and the position, so a repeated call has the same id. */
  readonly id?: string;
}

/** Tokens as the endpoint reports them. Missing counts are estimated: a quarter of the UTF-8 bytes, rounded up. */
export interface ReplyUsage {
  readonly inputTokens?: number;
  /** Includes the reasoning tokens. */
  readonly outputTokens?: number;
  readonly reasoningTokens?: number;
  readonly cachedInputTokens?: number;
}

/** A complete reply. */
export interface Reply {
  readonly text?: string;
  /** Sent as `reasoning_content`, before the text. */
  readonly reasoning?: string;
  /** More than one is a parallel call. */
  readonly toolCalls?: readonly ReplyToolCall[];
  /** `'omit'`: the endpoint says nothing about usage, as some do. */
  readonly usage?: ReplyUsage | 'omit';
  /** Default: `tool_calls` with tool calls, otherwise `stop`. */
  readonly finishReason?: ReplyFinishReason;
  /** HTTP headers of the answer, besides those that it has anyway. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds before the first byte. */
  readonly delayMs?: number;
  /** Milliseconds before each piece of a stream. */
  readonly chunkDelayMs?: number;
  /** In how many pieces a stream sends the text. Default: one for each word, at most 64. */
  readonly chunks?: number;
}

/** A fault in the middle of a reply: what is sent before it, and where it happens. */
export interface InterruptedFault {
  /** The reply that is interrupted. */
  readonly reply?: Reply;
  /**
   * After how many pieces of the reply the fault happens (at most all of them). Without streaming there are no pieces:
   * 0 is before the status line, any other number is in the middle of the body.
   */
  readonly afterChunks?: number;
}

/** A faulty reply. The tests show what a client makes of each. */
export type Fault =
  /** An HTTP error with OpenAI's error body, or `body` (JSON, or a string sent as it is). */
  | {
      readonly fault: 'status';
      readonly status: number;
      readonly message?: string;
      readonly retryAfterSeconds?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: unknown;
    }
  /** Hangs until the client disconnects or the endpoint stops. Default `afterChunks` 0: not even a status line. */
  | ({ readonly fault: 'hang' } & InterruptedFault)
  /** The socket is destroyed. Default `afterChunks` 2; 0 is before the status line. */
  | ({ readonly fault: 'cut' } & InterruptedFault)
  /** Half a JSON object, sent completely. Default `afterChunks` 0: the first event of the stream. */
  | ({ readonly fault: 'garbage' } & InterruptedFault)
  /** `data: {"error": …}` inside a stream (default `afterChunks` 1); without streaming a 500. */
  | ({ readonly fault: 'error-event'; readonly message?: string } & InterruptedFault)
  /** The whole reply, without a finish reason. */
  | { readonly fault: 'no-finish'; readonly reply?: Reply }
  /** 200 with an empty list of choices. */
  | { readonly fault: 'no-choices' }
  /** A tool call whose arguments are not JSON. `name` defaults to the first tool offered. */
  | { readonly fault: 'invalid-arguments'; readonly name?: string; readonly raw?: string }
  /** All tool calls carry the same id. */
  | { readonly fault: 'duplicate-ids'; readonly toolCalls: readonly ReplyToolCall[]; readonly id?: string }
  /** Tool calls without an id. */
  | { readonly fault: 'missing-id'; readonly toolCalls: readonly ReplyToolCall[] }
  /** The provider's filter stopped the reply: finish reason `content_filter`. */
  | { readonly fault: 'refusal'; readonly text?: string };

/**
 * Decides the reply to one call. If it throws, the client gets a 400 (which clients do not retry) that carries
 * the error's message. It is called again when a client repeats its call, so it must not keep state.
 */
export type Script = (request: ScriptedRequest) => Reply | Fault | Promise<Reply | Fault>;

/** One position of {@link scriptedTurns}. */
export type ScriptedTurn = Reply | Fault | Script;

/**
 * A script by position: a request with `i` assistant messages gets `turns[i]`. It keeps no state, so a call that is
 * repeated after a crash gets the same turn again. A request beyond the last turn gets a 400 that says so.
 */
export function scriptedTurns(turns: readonly ScriptedTurn[]): Script {
  return (request) => {
    const turn = turns[request.assistantCount];
    if (turn === undefined) {
      return {
        fault: 'status',
        status: 400,
        message: `the script has ${turns.length} turns and the request asks for turn ${request.assistantCount} (counted from 0)`,
      };
    }
    return typeof turn === 'function' ? turn(request) : turn;
  };
}
