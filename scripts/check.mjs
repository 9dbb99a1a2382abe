// Runs the static checks, two at a time, one line each and the whole output of those that fail.
//
//   npm run check              all
//   npm run check -- types api these, with what they need
import { spawn } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';

const tty = process.stdout.isTTY;

/** @type {Record<string, { run: string[], says: string, needs?: string }>} */
const CHECKS = {
  build: { run: ['node', 'scripts/build.mjs'], says: 'src to dist' },
  types: { run: ['tsc', '-p', 'tsconfig.json'], says: 'types of source, tests and examples' },
  page: { run: ['tsc', '-p', 'examples/chat/page'], says: 'types of the page of the chat' },
  sandbox: {
    run: ['tsc', '-p', 'tsconfig.workflows.json'],
    says: 'types of workflow code, without Node or DOM',
  },
  console: { run: ['tsc', '-p', 'src/console/tsconfig.json'], says: 'types of the page, with the DOM' },
  scripts: { run: ['tsc', '-p', 'scripts/tsconfig.json'], says: 'types of the scripts' },
  biome: {
    run: ['biome', 'ci', '--error-on-warnings', '.'],
    says: 'format and lint',
  },
  oxlint: { run: ['oxlint', '--deny-warnings'], says: 'type-aware lint' },
  rooms: { run: ['node', 'scripts/rooms.mjs'], says: 'directions of imports' },
  knip: { run: ['knip', '--no-progress'], says: 'unused files, exports, dependencies' },
  api: { run: ['node', 'scripts/api.mjs'], says: 'public API against etc/', needs: 'build' },
  package: { run: ['node', 'scripts/package.mjs'], says: 'the tarball, as its users see it', needs: 'build' },
};

/**
 * @param {string[]} command
 * @returns {Promise<{ code: number, output: string }>}
 */
function capture([command = '', ...args]) {
  return new Promise((resolve) => {
    let output = '';
    const node = command === 'node';
    const child = spawn(node ? process.execPath : command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      // On Windows, npm installs batch files, which need a shell. Node itself may be in a folder with a space, which a
      // shell would split.
      shell: process.platform === 'win32' && !node,
      env: { ...process.env, ...(tty && { FORCE_COLOR: '1' }) },
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.on('error', (error) => resolve({ code: 127, output: error.message }));
    // Some tools write colours even if they do not write to a terminal.
    child.on('close', (code) =>
      resolve({ code: code ?? 1, output: tty ? output : stripVTControlCharacters(output) }),
    );
  });
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in CHECKS));
if (unknown.length > 0) {
  console.error(`no check named ${unknown.join(', ')}; there are ${Object.keys(CHECKS).join(', ')}`);
  process.exit(2);
}
const names = new Set(asked.length > 0 ? asked : Object.keys(CHECKS));
for (const name of asked) {
  const needed = CHECKS[name]?.needs;
  if (needed !== undefined) names.add(needed);
}

/** @type {Map<string, Promise<boolean>>} */
const results = new Map();
/** @type {(() => void)[]} */
const queue = [];
let free = 2;

/** @returns {Promise<void>} */
async function slot() {
  if (free > 0) free -= 1;
  else await new Promise((resolve) => queue.push(() => resolve(undefined)));
}

function release() {
  const next = queue.shift();
  if (next) next();
  else free += 1;
}

/**
 * @param {string} name
 * @returns {Promise<boolean>}
 */
async function check(name) {
  const { run, says, needs } = /** @type {typeof CHECKS[string]} */ (CHECKS[name]);
  if (needs !== undefined && !(await results.get(needs))) {
    console.log(`SKIP  ${name.padEnd(8)} ${needs} failed`);
    return false;
  }
  await slot();
  const started = performance.now();
  const { code, output } = await capture(run);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  release();
  console.log(`${code === 0 ? 'ok   ' : 'FAIL '} ${name.padEnd(8)} ${says} (${seconds} s)`);
  if (code !== 0) console.log(output.trimEnd().replace(/^/gm, '      '));
  return code === 0;
}

for (const name of Object.keys(CHECKS).filter((key) => names.has(key))) results.set(name, check(name));
const failed = [];
for (const [name, result] of results) if (!(await result)) failed.push(name);
console.log(failed.length === 0 ? `${results.size} checks passed` : `failed: ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;
