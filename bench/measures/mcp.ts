/** A call of an MCP tool, beside the same tool in this process and a call of the bare client over the same wire. */
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import * as z from 'zod';
import { recorded } from '../../src/activities/recordable.ts';
import { execute } from '../../src/activities/tool-execution.ts';
import { type DefinedTool, defineTool, parseArgs, type ToolContext } from '../../src/agent/index.ts';
import { mcpTools } from '../../src/mcp/index.ts';
import type { Measure } from '../support/context.ts';
import { callArgs, toolText } from '../support/job.ts';
import { startMeasured } from '../support/processes.ts';
import type { Line } from '../support/report.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';

const SERVER = fileURLToPath(new URL('../processes/mcp-server.js', import.meta.url));

/** What an activity does with a call of a read. */
async function callAsSession(tool: DefinedTool): Promise<void> {
  const parsed = await parseArgs(tool, callArgs(1));
  if (!parsed.ok) throw new Error(parsed.problem);
  const context: ToolContext = {
    sessionId: 'bench',
    callId: 'call_1_1',
    toolCallId: 'call_1_1',
    messages: [],
    idempotencyKey: 'key',
    attempt: 1,
    abortSignal: new AbortController().signal,
    fence: async () => undefined,
    answers: [],
    context: undefined,
  };
  const output = await execute(tool, parsed.value, context);
  await recorded(tool, parsed.value, context, undefined, output);
}

export const mcp: Measure = async (context) => {
  const server = startMeasured('mcp-server', ['http']);
  const { port } = await server.said('ready');
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  const over: Record<string, () => Transport> = {
    stdio: () => new StdioClientTransport({ command: process.execPath, args: [SERVER] }),
    HTTP: () => new StreamableHTTPClientTransport(url),
  };
  const local = defineTool({
    description: 'Looks',
    inputSchema: z.object({ ref: z.string() }),
    effect: 'read',
    execute: ({ ref }) => toolText(ref),
  }) as DefinedTool;
  const calls = context.quick ? 100 : 500;
  const mean = (call: () => Promise<unknown>) => async (): Promise<number> => {
    const from = performance.now();
    for (let i = 0; i < calls; i++) await call();
    return (performance.now() - from) / calls;
  };
  const lines: Line[] = [];
  for (const [wire, transport] of Object.entries(over)) {
    const opened: Transport[] = [];
    const { look } = await mcpTools({
      name: 'looks',
      trusted: true,
      transport: () => {
        const made = transport();
        opened.push(made);
        return made;
      },
    });
    if (look === undefined) throw new Error('the server has no tool');
    const client = new Client(
      { name: 'bench', version: '1.0.0' },
      // Each request names the client's capabilities, and the server reads them.
      { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {}, url: {} } } },
    );
    await client.connect(transport());
    // Each client lists the tools once. Later calls check their results against the list.
    await client.listTools();
    const arms = {
      ours: mean(() => callAsSession(look)),
      local: mean(() => callAsSession(local)),
      wire: mean(() =>
        client.callTool({ name: 'look', arguments: callArgs(1) }, { signal: new AbortController().signal }),
      ),
    };
    await interleave(1, arms);
    const samples = await interleave(context.quick ? 3 : 15, arms);
    await client.close();
    for (const each of opened) await each.close();
    const base = samples.local.map((ms, i) => ms + (samples.wire[i] ?? Number.NaN));
    lines.push({
      measure: 'mcp',
      what: `a call of an MCP tool over ${wire}, against the same tool in process plus a call of the bare client`,
      value: medianRatio(samples.ours, base),
      unit: '×',
      target: { atMost: 1.1 },
      of: { ms: median(samples.ours), inProcessMs: median(samples.local), wireMs: median(samples.wire) },
      samples,
      note: 'arguments checked, result made ready for the history; 1 KB; each call can be cancelled',
    });
  }
  await server.kill();
  return lines;
};
