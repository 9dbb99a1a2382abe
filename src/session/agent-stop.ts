/** The built-in tool with which a model stops its sub-agents in the background. */
import type { ToolCall } from '../contract/calls.ts';
import type { SessionState } from '../contract/state.ts';
import type { Moment } from './events.ts';
import { endCall, iso } from './state.ts';

/** Answers a call of `agent_stop`. The session's next step cancels the sub-agent. */
export function stopAgent(state: SessionState, call: ToolCall, moment: Moment): void {
  const { session, reason = '' } = call.args as { session: string; reason?: string };
  const children = (state.children ?? []).filter(({ background }) => background !== undefined);
  const child = children.find(({ sessionId }) => sessionId === session);
  const open = children.filter(({ end }) => end === undefined).map(({ sessionId }) => sessionId);
  const at = iso(moment);
  if (child?.background === undefined || child.end !== undefined) {
    const what = child?.end === undefined ? 'is not one of your agents' : `has ended: ${child.end.status}`;
    const content = `${session} ${what}. At work: ${open.join(', ') || 'none'}.`;
    endCall(call, { kind: 'failed', certain: true }, { content, isError: true }, at);
    return;
  }
  child.background.stop ??= reason === '' ? `${state.agent} stopped it` : reason;
  const content = `${child.agent} is being stopped. You get a message when it has ended.`;
  endCall(call, { kind: 'completed' }, { content, isError: false }, at);
}
