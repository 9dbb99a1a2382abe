/**
 * `npm run bench`: the measurements of docs/performance.md; `npm run bench -- --help` lists its options.
 *
 * It compiles the sources and runs them in a plain Node process: otherwise the loader would be measured, too.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Options, readOptions, USAGE } from './options.ts';
import { writeDocs } from './support/docs.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { help, writeDocs: onlyDocs } = optionsOrExit();
if (help) console.log(USAGE);
else if (onlyDocs) console.log(`Written: ${(await writeDocs()).join(', ')}`);
else await measure();

function optionsOrExit(): Options {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(2);
  }
}

async function measure(): Promise<void> {
  const { status } = spawnSync('tsc', ['-p', 'bench/tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) process.exit(status ?? 1);
  const child = spawn(process.execPath, ['.perdure/bench/bench/run.js', ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // A terminal has already sent Ctrl-C to the whole group.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    });
  }
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
}
