/** Nothing of what people and models say is readable on the server of an encrypted session. */
import { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type PendingCall, Sessions } from '../../src/index.ts';
import { readPages } from '../../src/temporal/index.ts';
import { WORKFLOW } from '../../src/workflows/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, untilPhase } from '../support/stage.ts';
import { withKeys } from './support.ts';

const { History } = proto.temporal.api.history.v1;
const { DescribeWorkflowExecutionResponse } = proto.temporal.api.workflowservice.v1;
const MARKER = 'xylophone-4711';

/** Whether bytes say the marker, also in the base64 of JSON. */
function says(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes).toString('latin1');
  const hidden = [0, 1, 2].map((at) => {
    const encoded = Buffer.from(' '.repeat(at) + MARKER).toString('base64');
    return encoded.slice(4, -4);
  });
  return [MARKER, ...hidden].some((marker) => text.includes(marker));
}

test('messages, arguments, results, errors, live text, reasons and failures are nowhere in plain text', async () => {
  const stage = await openStage(({ stepInTurn }) => {
    if (stepInTurn === 0) {
      return {
        toolCalls: [
          { name: 'look', args: { at: MARKER } },
          { name: 'fail', args: { at: MARKER } },
          { name: 'pay', args: { to: MARKER } },
        ],
      };
    }
    return { text: `It is ${MARKER}. `.repeat(20), chunkDelayMs: 40, chunks: 20 };
  });
  const at = z.object({ at: z.string() });
  const look = defineTool({ inputSchema: at, effect: 'read', execute: () => `saw ${MARKER}` });
  const fail = defineTool({
    inputSchema: at,
    effect: 'read',
    execute: () => {
      throw new Error(`no ${MARKER}`);
    },
  });
  const pay = defineTool({
    inputSchema: z.object({ to: z.literal(MARKER) }),
    needsApproval: true,
    execute: () => MARKER,
  });
  const agent = defineAgent({
    name: 'discreet',
    model: stage.provider('m'),
    instructions: `Mind ${MARKER}.`,
    tools: { look, fail, pay },
  });
  const dataConverter = withKeys('old');
  await stage.startWorker([agent], { dataConverter });
  const { connection, options } = stage.client;
  const { namespace } = options;
  const client = new Client({ connection, namespace, dataConverter });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue });
  const session = await sessions.start('discreet', {
    id: stage.id(),
    message: `hear ${MARKER}`,
    context: { note: MARKER },
  });
  const { pending } = await untilPhase(session, 'approval');
  const [call] = pending as [PendingCall];
  // Recorded as a failed update: the arguments do not fit the tool.
  const edit = { decision: 'edit', args: { to: `not ${MARKER}` } } as const;
  expect(await rejection(session.decide(call, edit, { by: 'ada' }))).toMatchObject({
    code: 'INVALID_TOOL_INPUT',
  });
  await session.pause({ by: 'ada', reason: `because of ${MARKER}` });
  await session.resume();
  const [now] = (await untilPhase(session, 'approval')).pending as [PendingCall];
  await session.decide(now, { decision: 'approve' }, { by: 'ada' });

  // While the model speaks, its text is in heartbeats.
  const descriptions: Uint8Array[] = [];
  let heartbeats = 0;
  const describe = async (): Promise<string> => {
    const { raw } = await stage.client.workflow.getHandle(session.id).describe();
    descriptions.push(DescribeWorkflowExecutionResponse.encode(raw).finish());
    heartbeats += raw.pendingActivities?.filter(({ heartbeatDetails }) => heartbeatDetails).length ?? 0;
    return (await session.state()).phase;
  };
  await expect.poll(describe, { interval: 50 }).toBe('idle');
  expect(heartbeats).toBeGreaterThan(0);
  expect((await session.state()).lastText).toContain(MARKER);

  // A workflow that fails says why only to who has the key.
  const failing = await client.workflow.start(WORKFLOW.session, {
    workflowId: stage.id('failing'),
    taskQueue: stage.taskQueue,
    args: [{ agent: 'discreet', [MARKER]: 1, message: { text: 7 } }],
  });
  expect(await rejection(failing.result())).toMatchObject({
    cause: { message: expect.stringMatching(/message/) },
  });

  const histories: Uint8Array[] = [];
  let encoded = 0;
  for (const workflowId of [session.id, failing.workflowId]) {
    for await (const events of readPages(client, { workflowId })) {
      histories.push(History.encode({ events: [...events] }).finish());
      encoded += JSON.stringify(events).split('"Encoded failure"').length - 1;
    }
  }
  expect(encoded).toBeGreaterThan(1);
  expect(histories.some(says)).toBe(false);
  expect(descriptions.some(says)).toBe(false);
  const { executions } = await client.workflowService.listWorkflowExecutions({
    namespace,
    query: `WorkflowId = '${session.id}'`,
  });
  expect(says(Buffer.from(JSON.stringify(executions)))).toBe(false);
});
