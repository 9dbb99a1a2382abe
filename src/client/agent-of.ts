import type { Client } from '@temporalio/client';
import { isGrpcServiceError } from '@temporalio/client';
import { decodeOptionalSinglePayload } from '@temporalio/common/lib/internal-non-workflow/index.js';

const NOT_FOUND = 5;

/** The agent that a session was started with, as its first event has it; `null` when there is no such session. */
export async function agentOf(client: Client, workflowId: string): Promise<string | null> {
  const { namespace, loadedDataConverter } = client.options;
  const request = { namespace, execution: { workflowId }, maximumPageSize: 1 };
  try {
    const { history } = await client.workflowService.getWorkflowExecutionHistory(request);
    const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
    const input = await decodeOptionalSinglePayload<{ agent?: unknown } | null>(
      loadedDataConverter,
      started?.input?.payloads?.[0],
    );
    return typeof input?.agent === 'string' ? input.agent : null;
  } catch (error) {
    if (isGrpcServiceError(error) && Number(error.code) === NOT_FOUND) return null;
    throw error;
  }
}
