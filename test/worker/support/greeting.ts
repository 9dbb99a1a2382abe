/** Workflows of a user's own, which know nothing of sessions. */
import { proxyActivities } from '@temporalio/workflow';

const { model } = proxyActivities<{ model(name: string): Promise<string> }>({ startToCloseTimeout: '10s' });

export async function greeting(name: string): Promise<string> {
  return `Hello, ${name}.`;
}

/** Its activity is named like one of a session's. */
export async function modelling(name: string): Promise<string> {
  return model(name);
}
