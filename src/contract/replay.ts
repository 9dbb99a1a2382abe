import type { JsonValue } from './json.ts';

/** A call that was not executed, because the record of an equal one answers it. */
export interface Replay {
  tool: string;
  /** The call that was executed. */
  of: string;
  /** Where the equal call was made, as `in this session`. */
  where: string;
}

/** Says that a call was not executed, and why: for the model and for people. */
export function replayNotice({ tool, of, where }: Replay): string {
  return `[idempotent replay of ${of}] ${tool} was not executed: an equal call was made ${where}, and this is its result.`;
}

/** What the model is told of a call that was not executed: the notice, and the result of the call that was. */
export function replayedContent(replay: Replay, content: JsonValue): JsonValue {
  const notice = replayNotice(replay);
  return typeof content === 'string' ? `${notice}\n${content}` : { notice, result: content };
}
