import { WorkflowNotFoundError } from '@temporalio/client';
import { isNotFound } from '../temporal/index.ts';

/** Whether the workflow that was asked is closed, or the server does not know it. */
export function isGone(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError || isNotFound(error);
}
