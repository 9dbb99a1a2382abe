/** Inputs and results of the activities that run reads and ask the model. */
import type { ToolAnswer, ToolQuestion } from './calls.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Manifest } from './manifest.ts';
import type { Block, CallResult, MessageBlock } from './messages.ts';
import type { CheckedOutput } from './output.ts';
import type { ValueRef } from './values.ts';

/** The worker cannot act for the session. Without a `reason`, it lacks the agent. */
export interface AgentUnavailable {
  kind: 'unavailable';
  message: string;
  reason?: 'context_invalid' | 'instructions_failed';
  /** Another worker may have the agent: the session looks for it by itself. Absent in old histories. */
  lookAgain?: true;
}

/** A read to run. Its tool and arguments are in the last message of the transcript. */
export interface ReadCall {
  callId: string;
  /** Only if the key is not the `readKey` of the activity's own run: after a rewind or a reset, or in another scope. */
  idempotencyKey?: string;
  /** Only if a person has edited the arguments. */
  args?: JsonValue;
  /** What people have answered to the tool's questions. */
  answers?: ToolAnswer[];
}

/** Input of `reads`: a position in the transcript, and which calls of its last message to run. */
export interface ReadsInput {
  agent: string;
  /** Digest of the session's definition. A worker with another definition returns that one and runs nothing. */
  manifest: string;
  /** The start of the chained digest over the transcript's messages. */
  digest: string;
  reads: ReadCall[];
  scratchpadRoot?: string;
  /** The session's context, when it has one. */
  context?: JsonObject;
}

/** The worker has another definition than the session, and ran nothing. */
export interface NewManifest {
  kind: 'manifest';
  manifest: Manifest;
  /** This was not the activity's first attempt: an earlier attempt may have run something. */
  again?: true;
}

/** The recorded output of a tool. */
export interface ToolOutput {
  output: JsonValue;
  /** What the model gets in place of the output: the tool's `toModelOutput`. */
  modelOutput?: JsonObject;
  /** The whole output is stored, and `output` holds its beginning and its end. */
  value?: ValueRef;
}

export type ReadResult =
  | ({ kind: 'output' } & ToolOutput)
  /** The tool threw or timed out. */
  | { kind: 'error'; message: string }
  /** The tool asks a person. */
  | { kind: 'asks'; question: ToolQuestion }
  /** The worker lacks the tool. `misfit`: it has the tool, but the session's context does not fit. */
  | { kind: 'unavailable'; message: string; misfit?: true };

export interface ReadEnd {
  callId: string;
  result: ReadResult;
  /** When the last attempt began (milliseconds since 1970), and how many milliseconds it took. */
  startedAt: number;
  ms: number;
  /** The number of attempts, if more than one. */
  attempts?: number;
}

/** Why an activity returned reads without a reply of the model. */
export type NoReplyReason =
  /** No reply was asked for. */
  | 'reads_only'
  /** The results are larger than {@link ReadFirst.resultBytes}. */
  | 'large'
  /** A tool is gone. */
  | 'unavailable'
  /** A tool asks a person. */
  | 'asks'
  /** The session does not want a reply any more, or has not confirmed in time that it does. */
  | 'not_wanted'
  /** The activity was cancelled. Unfinished reads run again later. */
  | 'cancelled'
  /** Its worker was shut down. Unfinished reads run again. */
  | 'released';

/** The result of an activity that only reads. `reads` holds the finished reads in every case. */
export type ReadsResult = (
  | { kind: 'results'; reason: NoReplyReason }
  | NewManifest
  | AgentUnavailable
  /** The transcript could not be read. */
  | { kind: 'unreadable'; message: string }
) & { reads?: ReadEnd[] };

/** A call of the last message that ended before the reads beside it. Its result is not in the transcript yet. */
export interface EndedCall extends CallResult {
  callId: string;
}

/** What a model call does before it asks the model: it runs the remaining reads of the last reply. */
export interface ReadFirst {
  reads: ReadCall[];
  ended?: EndedCall[];
  /**
   * Bytes that the message with all results may have: what the budget reserves for it, or what the context window has
   * room for. If the message is larger, no model is asked. Absent: see `resultBytesOf`.
   */
  resultBytes?: number;
  scratchpadRoot?: string;
}

/** Input of `model`: a position in the transcript, not a transcript. */
export interface ModelInput {
  agent: string;
  /** Digest of the session's definition. A worker with another definition returns that one and spends nothing. */
  manifest: string;
  /** The start of the chained digest over the prompt's messages. */
  digest: string;
  turn: number;
  /** The session's context, when it has one. */
  context?: JsonObject;
  /** The reads of the last reply, when they are all that is left of it. */
  first?: ReadFirst;
  /** The model is asked for a closing summary, without tools. */
  summarize?: true;
  /** The model is asked to summarize the older messages of the prompt. */
  compact?: CompactInput;
  /** The model is asked a side question, without tools. */
  aside?: AsideQuestion;
  /** Index of the first model to ask. The models before it have failed at a cost. */
  fromModel?: number;
  /** The search attributes that the session writes, if some of Perdure's are missing. */
  searchAttributes?: string[];
}

/** A message that is answered while calls of the last reply are open. */
export interface AsideQuestion {
  blocks: MessageBlock[];
  /** What the model is told about each call of the last reply. */
  results: EndedCall[];
}

/** How to compact a prompt. */
export interface CompactInput {
  /** The limit of the messages that stay as they are, in bytes of JSON. */
  keep: number;
  /** An earlier attempt gave no summary: this time the model may not call tools. */
  again?: true;
}

/** A call as the worker prepared it: validated, identified, and checked for the need of an approval. */
export interface PreparedCall {
  name: string;
  args: JsonValue;
  metadata?: JsonObject;
  /** What the session derives the call's idempotency key from. Absent: all arguments. */
  identity?: JsonValue;
  needsApproval?: true;
  /** Why the call cannot run, in words for the model. */
  problem?: string;
}

/** Tokens of one model call as the provider counted them, or `null`. */
export interface Usage {
  inputTokens: number | null;
  outputTokens: number | null;
  /** Input tokens that were read from the provider's cache. */
  cachedInputTokens?: number;
  /** Input tokens that were written to the provider's cache. */
  cacheWriteTokens?: number;
}

/** Why a model call gave no reply. */
export type ModelFailureKind =
  /** The provider could not be reached, was overloaded, or limited us, in all attempts. */
  | 'provider_unavailable'
  /** The provider refused the request: bad key, bad schema, bad model, content policy. */
  | 'provider_rejected'
  /** The provider answered with something that is not a reply. */
  | 'invalid_response'
  /** The prompt is larger than the model's context window, or cannot be compacted. */
  | 'context_window'
  /** The connection was lost after the request was sent. */
  | 'interrupted'
  /** The worker was lost after it may have sent the request. */
  | 'worker_lost'
  /** The transcript could not be read, or its digest is not the one in the input. */
  | 'history';

/** The result of a model call. `reads` holds the finished reads in every case. */
export type ModelResult = ModelAnswer & {
  reads?: ReadEnd[];
  /** The search attributes that the server knows, if they differ from the input's. */
  searchAttributes?: string[];
};

type ModelAnswer =
  | { kind: 'results'; reason: NoReplyReason }
  | {
      kind: 'reply';
      /** Index of the answering model in the manifest's list. Absent for the first. */
      model?: number;
      blocks: Exclude<Block, { kind: 'tool_call' } | { kind: 'tool_result' }>[];
      calls: PreparedCall[];
      /** Absent when the model simply answered or called tools. */
      finishReason?: string;
      usage: Usage;
      /** The start of the digest of the instructions, when they are a function of the context. */
      instructions?: string;
      /** Only for an answer without calls, if the agent has an `output` schema. */
      output?: CheckedOutput<JsonValue>;
      /** The models that failed before the answering one, and why. */
      fallbacks?: { model: number; message: string }[];
    }
  /** A rate limit has no room for the request. The limiter signals the session when it is its turn. */
  | { kind: 'limited'; key: string; message: string }
  | Compacted
  /** No message of the prompt can be summarized. */
  | { kind: 'uncompacted'; message: string }
  | NewManifest
  | AgentUnavailable
  | {
      kind: 'failed';
      failure: ModelFailureKind;
      message: string;
      /** Requests that the provider may have billed at their worst case. */
      maybeBilled: number;
      /** Index of the model that failed at a cost. */
      model?: number;
      /** Its worker was shut down: the call is repeated and does not count as a failure. */
      released?: true;
    };

/** A summary of the older messages of a prompt. */
export interface Compacted {
  kind: 'compacted';
  /** Index in the session of the first message that stays. */
  before: number;
  /** Bytes of the messages that the summary replaces, and of the messages that stay. */
  replaced: number;
  kept: number;
  text: string;
  /** Earlier texts of people that the summary keeps word for word. */
  verbatim?: string[];
  /** The message that the model is answering, if the summary replaces that message. */
  open?: string;
  /** The pinned messages among those that the summary replaces. */
  pinned?: MessageBlock[];
  /** The model could not read everything at once: the rest must be compacted next. */
  more?: true;
  /** Index of the answering model in the manifest's list. Absent for the first. */
  model?: number;
  usage: Usage;
  fallbacks?: { model: number; message: string }[];
}
