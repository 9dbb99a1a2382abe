/** The floor's two activities, as a person writes them by hand, without any feature of ours. */
import { Context } from '@temporalio/activity';
import { callArgs, type Job, replyText, toolText } from '../support/job.ts';

/** A message as the hand-written workflow keeps it. */
export interface FloorMessage {
  role: 'user' | 'tool';
  callId?: string;
  name?: string;
  content: string;
}

/** What the model said. */
export interface FloorReply {
  text: string;
  calls: { id: string; name: string; args: { ref: string } }[];
  usage: { inputTokens: number; outputTokens: number };
}

/** The activities as the workflow sees them. */
export interface FloorActivities {
  /** Gets the messages that are new since the last call. Answers at once, without even an SDK in between. */
  model(input: { turn: number; messages: FloorMessage[] }): Promise<FloorReply>;
  tool(input: { callId: string; name: string; args: { ref: string } }): Promise<string>;
}

/** Makes the activities. `jobOf` gives the job of a run by its workflow id. */
export function floorActivities(
  jobOf: (workflowId: string) => Job,
  onRequest: (job: Job, turn: number) => void = () => {},
): FloorActivities {
  return {
    model: async ({ turn }) => {
      const job = jobOf(Context.current().info.workflowExecution?.workflowId ?? '');
      onRequest(job, turn);
      const calls =
        turn > job.turns ? [] : [{ id: `provider_${turn}`, name: job.tool, args: callArgs(turn) }];
      return { text: replyText(turn), calls, usage: { inputTokens: 500 * turn, outputTokens: 280 } };
    },
    tool: async ({ args }) => toolText(args.ref),
  };
}
