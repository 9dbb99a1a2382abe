import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { errorOf, run, start } from './support/perdure.ts';
import { AGENTS } from './support/stage.ts';

const VERBS = (
  'dev worker versions serve mcp codec-server archive webhooks setup doctor start send ls show tail ' +
  'approve edit reject respond resolve pause resume cancel budget checkpoints'
).split(' ');
const OF_VERSIONS = ['ls', 'set-current', 'move'];
const TIME_TRAVEL = ['ls', 'show', 'diff', 'fork', 'rewind', 'export', 'audit'];

test('the help names every verb and every exit code', async () => {
  const { code, stdout, stderr } = await run(['--help']);
  expect(code).toBe(0);
  expect(stderr).toBe('');
  for (const verb of VERBS) expect(stdout).toMatch(new RegExp(`^  ${verb} `, 'm'));
  for (const exit of [0, 1, 2, 3, 4, 5, 130]) expect(stdout).toMatch(new RegExp(`^  ${exit} +\\S`, 'm'));
});

test('every help fits a terminal of 80 columns', async () => {
  const verbs = [
    ...VERBS.map((verb) => [verb]),
    ...TIME_TRAVEL.map((verb) => ['checkpoints', verb]),
    ...OF_VERSIONS.map((verb) => ['versions', verb]),
    ['webhooks', 'test'],
    [],
  ];
  for (const verb of verbs) {
    const { stdout } = await run([...verb, '--help']);
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
  }
});

test('the version is that of the package', async () => {
  const { code, stdout } = await run(['--version']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each([
  ['no verb', [], ''],
  ['an unknown verb, with the nearest', ['shwo', 'x'], "unknown command 'shwo' (Did you mean show?)"],
  ['an unknown option', ['ls', '--lmit', '3'], "unknown option '--lmit' (Did you mean --limit?)"],
  ['a missing argument', ['show'], "missing required argument 'session'"],
  ['an argument too many', ['show', 'a', 'b'], "too many arguments for 'show'"],
  ['a missing option', ['edit', 'a'], "required option '--args <json>' not specified"],
  ['a number that is none', ['start', 'a', '--usd', 'much'], 'Write a number, 0 or more.'],
  ['half a turn', ['budget', 'a', '--turns', '1.5'], 'Write a whole number, 0 or more.'],
  ['a time that is none', ['budget', 'a', '--active', 'soon'], 'Write a duration'],
  ['a mode that is none', ['start', 'a', '--mode', 'talk'], 'Allowed choices are chat, task'],
  ['a status that is none', ['ls', '--status', 'waits'], 'Allowed choices are active, approval,'],
  ['an outcome that is none', ['resolve', 'a', 'call_1_0', 'maybe'], 'is none of landed, absent, failed'],
  ['arguments that are not JSON', ['edit', 'a', '--args', '{cents: 1}'], '--args is not JSON'],
  ['a file that is not there', ['edit', 'a', '--args', '@nowhere.json'], 'cannot read the file nowhere.json'],
  [
    'a list with half a limit',
    ['checkpoints', 'ls', 'a', '--limit', '1.5'],
    'Write a whole number, 0 or more.',
  ],
  ['a module that is not there', ['worker', 'nowhere.ts'], 'nowhere.ts is not a file'],
  ['a port that is none', ['serve', '--port', '70000'], 'Write a port, 0 to 65535.'],
  [
    'an archive in no directory',
    ['archive', '/no/such/place/x'],
    'the directory /no/such/place does not exist',
  ],
  ['a session beside --all', ['resume', 'a', '--all'], 'leave out --all'],
  ['a filter without --all', ['resume', 'a', '--agent', 'b'], 'need --all'],
  ['a cancellation with --each alone', ['cancel', 'a', '--each'], '--each: needs --undo'],
  ['a cancellation with --yes alone', ['cancel', 'a', '--no-undo', '--yes'], '--yes: needs --undo'],
  ['a host of an MCP server without a port', ['mcp', '--host', '0.0.0.0'], '--host: needs --port'],
  ['a token of an MCP server without a port', ['mcp', '--token', 'x'.repeat(16)], '--token: needs --port'],
  ['two modes', ['start', 'a', 'b', '--task', '--mode', 'chat'], "'--task' cannot be used with"],
  ['an id of no message', ['start', 'a', '--message-id', 'm'], '--message-id: needs a message'],
  ['a sender of no message', ['start', 'a', '--by', 'ada'], '--by: needs a message'],
  ['a name for a budget that is only shown', ['budget', 'a', '--by', 'ada'], '--by: needs a cap or --finish'],
  [
    'a name for a pool that is only shown',
    ['pool', 'a', '--by', 'ada'],
    '--by: needs a cap, --period or --zone',
  ],
  ['a name for a queue that is only shown', ['queue', 'a', '--by', 'ada'], '--by: needs a message'],
  ['an existing session without its id', ['start', 'a', 'b', '--use-existing'], '--use-existing: needs --id'],
  ['a result of what never happened', ['resolve', 'a', 'c', 'absent', '--output', '1'], '--output: needs'],
  ['a result of what failed', ['resolve', 'a', 'c', 'failed', '--output', '1'], '--output: needs'],
  ['a reason of what happened', ['resolve', 'a', 'c', 'landed', '--reason', 'x'], '--reason: needs'],
  ['a claim without a provider', ['serve', '--oidc-tenant-claim', 'org'], '--oidc-issuer is missing'],
  ['a build of no deployment', ['worker', AGENTS, '--build-id', '7'], '--build-id: needs --deployment'],
  [
    'a module of webhooks that are addresses',
    ['webhooks', 'test', 'https://x.example', '--module', AGENTS],
    '--module: needs',
  ],
  ['a secret of no address', ['webhooks', 'test', 'chat', '--secret', 'x'], '--secret: needs an address'],
])('%s is a usage error', async (_name, args, message) => {
  const { code, stdout, stderr } = await run(args);
  expect(stderr).toContain(message);
  expect(stdout).toBe('');
  expect(code).toBe(2);
  if (args.length > 0)
    expect(stderr).toMatch(/^error INVALID_ARGUMENT: [^\n]*\n {2}next: perdure .*--help\n$/);
});

test.each([['--port', '7000'], ['--no-ui']])(
  'dev refuses %s where another server is used',
  async (...options) => {
    const { address } = inject('temporal');
    const ran = await run(['dev', AGENTS, ...options], { env: { TEMPORAL_ADDRESS: address } });
    const used = `${address} (TEMPORAL_ADDRESS) is used`;
    expect(ran.stderr).toContain(`${options[0]}: no server is started here: ${used}. Leave the option out`);
    expect(ran.code).toBe(2);
  },
);

test('a CommonJS project is told what to change', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-commonjs-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'package.json'), '{"type": "commonjs"}');
  await writeFile(join(folder, 'agents.ts'), 'export const agents = await Promise.resolve([]);\n');
  const { code, stderr } = await run(['worker', join(folder, 'agents.ts')]);
  expect(stderr).toContain(
    'The module is CommonJS, but it must be an ES module: set "type": "module" in its package.json, or rename',
  );
  expect(code).toBe(1);
});

test('with --json an error is JSON, also when the arguments cannot be read', async () => {
  const ran = await run(['show', '--json']);
  expect(ran).toMatchObject({ code: 2, stdout: '' });
  expect(errorOf(ran)).toEqual({
    code: 'INVALID_ARGUMENT',
    message: "missing required argument 'session'",
    details: {},
    next: 'perdure show --help',
  });
});

test('a PERDURE_LIVE that is no Redis is named before anything is connected', async () => {
  const ran = await run(['ls', '--json', '--address', '127.0.0.1:1'], {
    env: { PERDURE_LIVE: 'http://localhost' },
  });
  expect(ran.code).toBe(2);
  expect(errorOf(ran)).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: 'PERDURE_LIVE: url: write redis://user:password@host:6379',
  });
});

test('a server that is not there is named, with where its address came from', async () => {
  const env = { TEMPORAL_ADDRESS: '127.0.0.1:1' };
  const [told, ran] = await Promise.all([
    run(['ls'], { env }),
    run(['--json', 'show', 'x', '--address', '127.0.0.1:2'], { env }),
  ]);
  expect(told).toMatchObject({ code: 5, stdout: '' });
  expect(told.stderr).toMatch(
    /^error SERVER_UNAVAILABLE: .*127\.0\.0\.1:1 \(from TEMPORAL_ADDRESS\).*perdure dev/,
  );
  expect(ran.code).toBe(5);
  expect(errorOf(ran)).toMatchObject({
    code: 'SERVER_UNAVAILABLE',
    details: { address: '127.0.0.1:2', source: 'option' },
    next: 'perdure doctor',
  });
});

test('a namespace that is not there is named', async () => {
  const { address } = inject('temporal');
  const ran = await run(['ls', '--json', '--address', address, '--namespace', 'nowhere']);
  expect(ran.code).toBe(5);
  expect(errorOf(ran).message).toContain('namespace nowhere');
});

test('an address that is typed goes with the namespace of the environment', async () => {
  const { address } = inject('temporal');
  const ran = await run(['ls', '--json', '--address', address], { env: { TEMPORAL_NAMESPACE: 'nowhere' } });
  expect(ran.code).toBe(5);
  expect(errorOf(ran).message).toContain('namespace nowhere');
});

test('a reader that goes away is no error', async () => {
  const { child, ended } = start(['--help']);
  child.stdout?.destroy();
  expect(await ended).toMatchObject({ code: 0, stderr: '' });
});

test('there is colour where it is wanted, and only there', async () => {
  const args = ['show'];
  const colour = '\u001b[';
  expect((await run(args)).stderr).not.toContain(colour);
  expect((await run(args, { env: { FORCE_COLOR: '1' } })).stderr).toContain(colour);
});
