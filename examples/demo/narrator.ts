/** Turns what changes in a session's history into lines of the story. */
import type { Phase, ToolCall } from 'perdure';
import type { Journal } from './journal.ts';
import type { Story } from './story.ts';

/** Tells each change once. */
export class Narrator {
  readonly #story: Story;
  readonly #told = new Map<string, string>();
  #phase: Phase | undefined;
  #notices = 0;

  constructor(story: Story) {
    this.#story = story;
  }

  readonly tell = ({ state, phase }: Journal): void => {
    if (state === null) return;
    for (const call of state.calls) {
      const key = `${call.status.kind} ${call.dispatches.length}`;
      if (this.#told.get(call.id) === key) continue;
      this.#told.set(call.id, key);
      const line = lineOf(call, state.manifest?.tools[call.name]?.settleMs ?? 0);
      if (line !== null) this.#story.step(`${call.name}: ${line}`);
    }
    for (const { kind, message } of state.notices.slice(this.#notices))
      this.#story.detail(`${kind}: ${message}`);
    this.#notices = state.notices.length;
    if (phase === 'thinking' && this.#phase !== 'thinking') this.#story.detail('asking the model …');
    this.#phase = phase;
  };
}

function lineOf(call: ToolCall, settleMs: number): string | null {
  const { status, args, dispatches, decision } = call;
  switch (status.kind) {
    case 'approval':
      return `the agent asks for ${JSON.stringify(args)}. That is over the limit: it waits for a person`;
    case 'running':
      return `dispatch ${dispatches.length} is on record, and goes to a worker`;
    case 'settling':
      return `lost (${status.reason}). Nobody knows whether it happened: waiting ${settleMs / 1_000} s, then asking verify`;
    case 'verifying':
      return 'verify looks for it at the provider, by its idempotency key';
    case 'completed':
      return dispatches.at(-1)?.outcome === 'landed'
        ? `verify found it: it had happened. Its receipt is the call's result`
        : `done: ${JSON.stringify(call.result?.content)}`;
    case 'failed':
    case 'unknown':
      return `${status.kind}: ${JSON.stringify(call.result?.content ?? status)}`;
    case 'skipped':
      return `not executed: ${decision?.decision ?? 'skipped'}${decision === null ? '' : ` by ${decision.by}`}`;
    case 'backoff':
      return `not attempted (${dispatches.at(-1)?.reason ?? ''}): tried again soon`;
    default:
      return null;
  }
}
