/** Answers a call from the record of an equal call. */
import type { ToolCall } from '../contract/calls.ts';
import type { JsonValue } from '../contract/json.ts';
import type { CallResult } from '../contract/messages.ts';
import { type Replay, replayedContent, replayNotice, withNotice } from '../contract/replay.ts';
import type { SessionState } from '../contract/state.ts';
import type { Moment } from './events.ts';
import { endCall, iso, note } from './state.ts';

/** Ends a call with the record of an equal call of this session. */
export function replayCall(
  state: SessionState,
  call: ToolCall,
  from: {
    of: string;
    status: { kind: 'completed' } | { kind: 'failed'; certain: boolean };
    result: CallResult;
  },
  moment: Moment,
): void {
  const where = call.scope === 'message' ? 'in answer to the same message' : 'in this session';
  const { content, modelOutput } = from.result;
  const told = replay(state, call, { of: from.of, where, content }, moment);
  const notice = replayNotice({ tool: call.name, of: from.of, where });
  const output = modelOutput === undefined ? {} : { modelOutput: withNotice(notice, modelOutput) };
  endCall(call, { ...from.status }, { ...from.result, content: told, ...output }, iso(moment));
}

/** Marks a call as answered by another call's record, notes it for people, and returns what the model is told. */
export function replay(
  state: SessionState,
  call: ToolCall,
  { content, ...made }: Omit<Replay, 'tool'> & { content: JsonValue },
  moment: Moment,
): JsonValue {
  const told = { tool: call.name, ...made };
  call.replayOf = made.of;
  note(state, moment, 'replay', `${call.id}: ${replayNotice(told)}`);
  return replayedContent(told, content);
}
