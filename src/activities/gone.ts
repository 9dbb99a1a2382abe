import { WorkflowNotFoundError } from '@temporalio/client';
import { isNotFound } from '../temporal/index.ts';

/** Whether the error says that the workflow is closed, or that the server does not know it. */
export function isGone(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError || isNotFound(error);
}
