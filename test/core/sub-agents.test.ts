import { expect, test } from 'vitest';
import { advance } from '../../src/session/advance.ts';
import type { Command, Input } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';

test('a sub-agent that no worker has reports that after a minute, and ends', () => {
  const parent = { sessionId: 'top', callId: 'call_1_0', root: 'top', depth: 1, path: ['lead'] };
  const moment = { now: Date.UTC(2026, 10, 23), historyEvents: 3, historyBytes: 0 };
  const input = { agent: 'nobody', mode: 'task', message: { text: 'Go.' }, parent } as const;
  const state = initialState({ sessionId: 'top/x.1', runId: 'r', firstRunId: 'r' }, input, moment);
  const missing = { kind: 'unavailable', message: 'no worker has nobody', lookAgain: true } as const;
  let waited = 0;
  let { commands } = advance(state, [], moment);
  for (let n = 0; n < 40 && commands[0]?.kind !== 'close'; n++) {
    const inputs = commands.map((command): Input => ({ type: 'outcome', ...answerTo(command) }));
    commands = advance(state, inputs, moment).commands;
  }

  expect(waited).toBe(63_000);
  expect(state.ending).toBe('cancelled');
  expect(commands).toMatchObject([{ kind: 'close', result: { status: 'cancelled' } }]);

  function answerTo(command: Command): Omit<Extract<Input, { type: 'outcome' }>, 'type'> {
    switch (command.kind) {
      case 'describe':
        return { seq: command.seq, outcome: { kind: 'describe', result: { ok: true, value: missing } } };
      case 'timer':
        waited += command.ms;
        return { seq: command.seq, outcome: { kind: 'timer' } };
      case 'report':
        expect(command.input.end).toMatchObject({ status: 'cancelled', output: 'no worker has nobody' });
        return { seq: command.seq, outcome: { kind: 'report', result: { ok: true, value: undefined } } };
      default:
        return expect.fail(`a command that nobody expects: ${command.kind}`);
    }
  }
});
