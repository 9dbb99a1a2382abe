/** What a session waits for by the clock, and its scratchpad, as text. */
import type { SessionView } from '../contract/views.ts';
import { command } from '../session/commands.ts';
import { clean, inline, type Terminal } from './terminal.ts';

export function timesLines({ sessionId, sleeping, reminders }: SessionView, terminal: Terminal): string {
  const lines = [
    ...sleeping.flatMap(({ callId, until, reason }) => [
      `  ${clean(callId)} sleeps until ${until}: ${clean(reason)}`,
      `    next: ${terminal.style('green', clean(command('wake', sessionId, callId)))}`,
    ]),
    ...reminders.map(({ at, text }) => `  reminder at ${at}: ${inline(text, 200)}`),
  ];
  return lines.length === 0 ? '' : [terminal.style('bold', 'Times'), ...lines].join('\n');
}

export function scratchpadLines({ scratchpad }: SessionView, terminal: Terminal): string {
  const lines = scratchpad.map(({ path, bytes }) => `  ${clean(path)}  ${bytes} bytes`);
  return lines.length === 0 ? '' : [terminal.style('bold', 'Scratchpad'), ...lines].join('\n');
}
