/** The heartbeats of long reads, by which a successor knows whether the model was asked. */
import { setTimeout } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { WorkerInterceptors } from '@temporalio/worker';
import { expect, test, vi } from 'vitest';
import * as z from 'zod';
import type { LiveText } from '../../src/contract/live-text.ts';
import { ACTIVITY } from '../../src/contract/names.ts';
import { defineAgent, defineTool } from '../../src/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** One heartbeat: by the SDK, which sends it when it sees fit, or a mark, which is sent at once. */
interface Beat {
  by: 'sdk' | 'mark';
  at: number;
  details: LiveText;
}

/** How long the server takes to record a mark. */
const SLOW_MS = 400;

/** Notes the heartbeats of model activities in their order, and tells of each. */
function observer(beats: Beat[], tell: (beat: Beat) => void): WorkerInterceptors {
  const note = (by: Beat['by'], details: unknown): void => {
    const beat = { by, at: performance.now(), details: details as LiveText };
    beats.push(beat);
    tell(beat);
  };
  return {
    activity: [
      ({ info }) => ({
        inbound: {
          execute: async (input, next) => {
            if (info.activityType !== ACTIVITY.model) return next(input);
            const context = Context.current();
            const { workflowService } = context.client;
            const beat = context.heartbeat.bind(context);
            vi.spyOn(context, 'heartbeat').mockImplementation((details) => {
              beat(details);
              note('sdk', details);
            });
            const record = workflowService.recordActivityTaskHeartbeat.bind(workflowService);
            const marks = vi.spyOn(workflowService, 'recordActivityTaskHeartbeat');
            marks.mockImplementation(async (request) => {
              const [payload] = request.details?.payloads ?? [];
              const details = JSON.parse(Buffer.from(payload?.data ?? []).toString()) as LiveText;
              if (details.stage === 'asking') note('mark', details);
              // A slow answer: whoever does not wait for it says `asking` first.
              else await setTimeout(SLOW_MS);
              const answer = await record(request);
              if (details.stage !== 'asking') note('mark', details);
              return answer;
            });
            try {
              return await next(input);
            } finally {
              marks.mockRestore();
            }
          },
        },
      }),
    ],
  };
}

test('each mark of long reads follows a heartbeat of the SDK, and none comes after `asking`', async () => {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [{ name: 'look', args: {} }] } : { text: 'Seen.' },
  );
  let end = (): void => {};
  const read = new Promise<void>((resolve) => {
    end = resolve;
  });
  const look = defineTool({ inputSchema: z.object({}), effect: 'read', execute: () => read });
  const agent = defineAgent({
    name: 'reader',
    model: stage.provider('m'),
    instructions: 'Read.',
    heartbeat: '1s',
    tools: { look },
  });
  const beats: Beat[] = [];
  const signs = (): Beat[] =>
    beats.filter(({ by, details }) => by === 'sdk' && details.running?.length === 1);
  const marks = (): Beat[] => beats.filter(({ by }) => by === 'mark');
  // The read ends with a heartbeat whose mark is not sent yet.
  const interceptors = observer(beats, ({ by }) => {
    if (by === 'sdk' && marks().length >= 2) end();
  });
  await stage.startWorker([agent], { interceptors });
  const session = await stage.sessions.start('reader', { id: stage.id(), message: 'read' });
  await untilPhase(session, 'idle');

  expect(marks().map(({ details }) => details.stage)).toEqual([...signs().map(() => 'reading'), 'asking']);
  for (const [i, sign] of signs().entries()) {
    const mark = marks()[i];
    // Long enough for the SDK's own request to be recorded first.
    expect((mark?.at ?? 0) - sign.at).toBeGreaterThan(SLOW_MS + 90);
  }
  await expectSound(stage, session);
});
