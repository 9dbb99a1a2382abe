import { Client, Connection } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { PerdurePlugin } from 'perdure';

const address = process.env['TEMPORAL_ADDRESS'] ?? 'localhost:7233';
const connection = await Connection.connect({ address });
const query = "WorkflowType = 'agentSession' AND ExecutionStatus = 'Running'";
const histories = new Client({ connection }).workflow.list({ query }).intoHistories();

const plugins = [new PerdurePlugin({ agents: [] })];
for await (const { workflowId, error } of Worker.runReplayHistories({ plugins }, histories)) {
  console.log(workflowId, error === undefined ? 'replays' : `does not replay: ${error.message}`);
  if (error !== undefined) process.exitCode = 1;
}
await connection.close();
