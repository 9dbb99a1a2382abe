import type { JsonObject, JsonValue } from './json.ts';

/** A call that was answered from the record of an equal call, without execution. */
export interface Replay {
  tool: string;
  /** The call that was executed. */
  of: string;
  /** Where the equal call was made, such as `in this session`. */
  where: string;
}

/** Says that a call was not executed, and why. */
export function replayNotice({ tool, of, where }: Replay): string {
  return `[idempotent replay of ${of}] ${tool} was not executed: an equal call was made ${where}, and this is its result.`;
}

/** What the model is told: the notice, and the result of the executed call. */
export function replayedContent(replay: Replay, content: JsonValue): JsonValue {
  return contentWithNotice(replayNotice(replay), content);
}

/** A result with a notice. Text stays text, JSON stays JSON. */
export function contentWithNotice(notice: string, content: JsonValue): JsonValue {
  return typeof content === 'string' ? `${notice}\n${content}` : { notice, result: content };
}

/** A `toModelOutput` result with a notice before it. */
export function withNotice(notice: string, output: JsonObject): JsonObject {
  const { type, value } = output;
  const said: JsonObject = { type: 'text', text: notice };
  if (type === 'text' && typeof value === 'string') return { ...output, value: `${notice}\n${value}` };
  const parts =
    type === 'content' && Array.isArray(value)
      ? value
      : [{ type: 'text', text: JSON.stringify(value ?? null) }];
  return { type: 'content', value: [said, ...parts] };
}
