/** The README: its code is that of files which are checked and run, and its commands do what it says. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import type { Cli } from '../../src/cli/cli.ts';
import { modelsFromEnvironment } from '../../src/index.ts';
import { findTemporalBinary } from '../../src/server/index.ts';
import { type Script, scriptedTurns, startScriptedModel } from '../../src/testing/index.ts';
import { builtPackage } from '../cli/support/built.ts';
import { openStage, until } from '../support/stage.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const README = page('README.md');
/** The README and all pages of docs. */
const ALL = [
  README,
  ...readdirSync(join(ROOT, 'docs'))
    .filter(isPage)
    .map((name) => page(join('docs', name))),
];
const execute = promisify(execFile);
/** Many processes, one after the other. */
const LONG = { timeout: 300_000 };

type Verb = (program: Command, cli: Cli) => void;

function isPage(name: string): boolean {
  return name.endsWith('.md');
}

/** The lines of the `sh` block that follows a text of a page. */
function commandsAfter(text: string, shown: string): string[] {
  const start = shown.indexOf('```sh\n', shown.indexOf(text)) + '```sh\n'.length;
  return shown.slice(start, shown.indexOf('```', start)).trimEnd().split('\n');
}

/** Splits a line as a shell does: words, and texts in single quotes. */
function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

/** The text of a file, or of a region of it, as it stands in the README. */
async function source(path: string, region: string | undefined): Promise<string> {
  const text = await readFile(join(ROOT, path), 'utf8');
  if (region === undefined) return text;
  const found = new RegExp(`^// #region ${region}\\n([\\s\\S]*?)^// #endregion`, 'm').exec(text);
  if (found?.[1] === undefined) throw new Error(`${path} has no region ${region}`);
  return found[1];
}

test.each([
  ['README.md', 2],
  ['docs/checkpoints.md', 1],
  ['docs/context.md', 2],
  ['docs/effects.md', 1],
  ['docs/notifications.md', 1],
  ['docs/production.md', 3],
  ['docs/telemetry.md', 1],
  ['docs/testing.md', 2],
])(
  'each piece of code of %s is the text of a file: run this with -u to bring it over',
  async (page, atLeast) => {
    const path = join(ROOT, page);
    const shown = await readFile(path, 'utf8');
    let filled = shown;
    const snippets = [
      ...shown.matchAll(/<!-- (examples\/[\w./-]+\.ts)(?:#([\w-]+))? -->\n```ts\n[\s\S]*?```/g),
    ];
    for (const [whole, file = '', region] of snippets) {
      const text = await source(file, region);
      const at = whole.slice(0, whole.indexOf('\n'));
      filled = filled.replace(whole, () => `${at}\n\`\`\`ts\n${text.trim()}\n\`\`\``);
    }
    expect(shown.match(/^```ts/gm)).toHaveLength(snippets.length);
    expect(snippets.length).toBeGreaterThanOrEqual(atLeast);
    await expect(filled).toMatchFileSnapshot(path);
  },
);

test('each link from page to page leads somewhere', () => {
  const pages = [
    'README.md',
    'CONTRIBUTING.md',
    ...readdirSync(join(ROOT, 'docs'))
      .filter(isPage)
      .map((name) => `docs/${name}`),
  ];
  const anchors = (path: string): string[] =>
    [...page(path).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
  const broken = pages.flatMap((from) =>
    [...page(from).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].flatMap(([, to = '', anchor]) => {
      const path = to === '' ? from : join(from, '..', to);
      if (!existsSync(join(ROOT, path))) return [`${from}: ${to}`];
      return anchor === undefined || anchors(path).includes(anchor) ? [] : [`${from}: ${to}#${anchor}`];
    }),
  );
  expect(broken).toEqual([]);
});

test('each command of perdure has the verb and the options that the pages show', async () => {
  const shown = [...ALL.join('\n').matchAll(/^.*?\bperdure ((?:[a-z]+)\b.*)$/gm)]
    .filter(([line]) => !line.includes('alias'))
    .map(([, command = '']) => words(command.split('`')[0]?.split(' #')[0] ?? ''));
  const options = new Map<string, Set<string>>();
  for (const [verb = '', ...rest] of shown) {
    const known = options.get(verb) ?? new Set();
    options.set(verb, known);
    for (const word of rest) if (word.startsWith('--')) known.add(word);
  }
  expect(options.size).toBeGreaterThanOrEqual(12);
  const { stdout: ofAll } = await execute(process.execPath, [builtPackage().main, '--help'], { cwd: ROOT });
  for (const [verb, used] of options) {
    const file = ['approve', 'edit', 'reject', 'respond'].includes(verb) ? 'decide' : verb;
    const room = (await import(`../../src/cli/verbs/${file}.ts`)) as Record<string, Verb>;
    const program = new Command('perdure');
    // A verb uses its run of the command line only when it acts.
    const name = file.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    room[name]?.(program, {} as Cli);
    const command = program.commands.find((found) => found.name() === verb);
    const known = [command, ...(command?.commands ?? [])]
      .map((found) => found?.helpInformation() ?? '')
      .join('\n');
    expect(known, verb).toContain(`Usage: perdure ${verb}`);
    for (const option of used) expect(known + ofAll, `perdure ${verb} ${option}`).toContain(option);
  }
});

test('each command on a session is well typed: all that is missing is the session', LONG, async () => {
  const lines = new Set(ALL.join('\n').match(/^perdure \w+ ticket-42\b.*$/gm));
  expect(lines.size).toBeGreaterThanOrEqual(8);
  const { address, namespace } = inject('temporal');
  for (const line of lines) {
    const args = [...words(line).slice(1), '--address', address, '--namespace', namespace];
    const ran = execute(process.execPath, [builtPackage().main, ...args], { cwd: ROOT });
    // 3 is "not found"; 2 would be "usage".
    await expect(ran, line).rejects.toMatchObject({ code: 3, stderr: expect.stringContaining('ticket-42') });
  }
});

const CLERK: Script = scriptedTurns([
  { toolCalls: ['milk', 'bread'].map((title) => ({ name: 'addTask', args: { title } })) },
  { text: 'Milk and bread are on your list.' },
  { text: 'It is there already.' },
]);

test(
  'five minutes to an agent: a server and a worker, a session, and a client of your own',
  LONG,
  async () => {
    const [dev = '', start = ''] = commandsAfter('You need two terminals', README);
    const model = await startScriptedModel({ script: CLERK });
    onTestFinished(() => model.stop());
    // A clone of its own, as far as a server's data and a task list are concerned.
    const clone = mkdtempSync(join(tmpdir(), 'perdure-readme-'));
    onTestFinished(() => rmSync(clone, { recursive: true, force: true }));
    for (const name of ['src', 'node_modules', 'package.json', 'tsconfig.json']) {
      symlinkSync(join(ROOT, name), join(clone, name));
    }
    const quickstart = join(clone, 'examples', 'quickstart');
    const code = (path: string): boolean => !path.endsWith('.jsonl');
    cpSync(join(ROOT, 'examples', 'quickstart'), quickstart, { recursive: true, filter: code });
    const run = (line: string, env: Record<string, string> = {}) => {
      const typed = words(line);
      const at = typed.indexOf('perdure');
      const own = Object.fromEntries(
        typed.slice(0, at).map((pair) => pair.split(/=(.*)/) as [string, string]),
      );
      if (own['OPENAI_BASE_URL'] !== undefined) own['OPENAI_BASE_URL'] = model.url;
      const args = ['--import', 'tsx', 'src/cli/main.ts', ...typed.slice(at + 1)];
      const inherited = { ...process.env, TEMPORAL_ADDRESS: undefined, OPENAI_API_KEY: undefined };
      return { args, options: { cwd: clone, env: { ...inherited, ...own, ...env } } };
    };

    const server = run(dev);
    const child = spawn(process.execPath, server.args, {
      ...server.options,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const exited = once(child, 'close');
    onTestFinished(() => void child.kill('SIGKILL'));
    let told = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        told += text;
      });
    }
    await expect.poll(() => told, { timeout: 60_000 }).toMatch(/^ready +clerk/m);

    const session = run(start);
    const { stdout } = await execute(process.execPath, session.args, session.options);
    expect(stdout).toContain('Milk and bread are on your list.');
    const tasks = (): unknown[] =>
      readFileSync(join(quickstart, 'tasks.jsonl'), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { title: string }).title);
    expect(tasks()).toEqual(['milk', 'bread']);

    const address = /^server +(\S+),/m.exec(told)?.[1] ?? '';
    const example = (name: string, ...args: string[]) =>
      execute(process.execPath, ['--import', 'tsx', `examples/quickstart/${name}`, ...args], {
        cwd: clone,
        env: { ...process.env, TEMPORAL_ADDRESS: address },
      });
    const client = await example('client.ts');
    expect(client.stdout).toMatch(
      /^Milk and bread are on your list\.\nsession-[\w-]+: 2 turns, \d+ tokens\n$/,
    );
    // Another session: its effects are its own.
    expect(tasks()).toEqual(['milk', 'bread', 'milk', 'bread']);

    const [, id = ''] = /(session-[\w-]+):/.exec(client.stdout) ?? [];
    const past = await example('checkpoints.ts', id);
    const checkpoints = past.stdout.match(/^[0-9a-f-]{36}:\d+ \S+ \d \w+$/gm) ?? [];
    expect(checkpoints.length).toBeGreaterThanOrEqual(5);
    expect(checkpoints[0]).toMatch(/ 2 idle$/);
    const [, fork = ''] = /forked into (\S+)/.exec(past.stdout) ?? [];
    const shown = run(`perdure tail ${fork} --once`);
    expect((await execute(process.execPath, shown.args, shown.options)).stdout).toContain(
      'It is there already.',
    );
    const replayed = await example('replay.ts');
    for (const running of [id, fork]) expect(replayed.stdout).toContain(`${running} replays\n`);
    child.kill('SIGTERM');
    expect(await exited, told).toEqual([0, null]);
  },
);

test("a client in any language: the commands of Temporal's own command line", async () => {
  const stage = await openStage(CLERK);
  const folder = mkdtempSync(join(tmpdir(), 'perdure-readme-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  vi.stubEnv('TASKS_FILE', join(folder, 'tasks.jsonl'));
  onTestFinished(() => void vi.unstubAllEnvs());
  const { clerk } = await import('../../examples/quickstart/agents.ts');
  const models = modelsFromEnvironment({ OPENAI_BASE_URL: stage.model.url });
  await stage.startWorker([clerk], models === undefined ? {} : { models });
  const { path } = await findTemporalBinary();
  const id = stage.id('ticket');
  const session = stage.sessions.get(id);
  const temporal = async (line: string): Promise<string> => {
    const [command = '', ...args] = words(line);
    expect(command).toBe('temporal');
    const own = args.map((word) => (word === 'ticket-42' ? id : word === 'perdure' ? stage.taskQueue : word));
    const { address, namespace } = inject('temporal');
    return (await execute(path, [...own, '--address', address, '--namespace', namespace])).stdout;
  };
  const lines = commandsAfter('<!-- run -->', page('docs/other-languages.md'));
  const [start = '', query = '', send = '', pause = '', resume = '', budget = '', cancel = '', ...more] =
    lines;
  expect(more).toEqual([]);

  await temporal(start);
  await until(session, ({ phase, messages }) => phase === 'idle' && messages > 1);
  expect(await temporal(query)).toContain('"sessionId"');
  await temporal(pause);
  await until(session, ({ paused }) => paused?.by === 'ada');
  await temporal(send);
  await until(session, ({ queued }) => queued === 1);
  await temporal(resume);
  const answered = await until(
    session,
    ({ phase, lastText }) => phase === 'idle' && lastText.includes('already'),
  );
  // Sent again with its id, it is not taken again.
  await temporal(send);
  await temporal(budget);
  expect(await session.state()).toMatchObject({
    messages: answered.messages,
    budget: { limits: { turns: 20 } },
  });
  await temporal(cancel);
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
});
