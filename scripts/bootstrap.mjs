// Runs a command of this project on a clone that has nothing but Node: installs what package-lock.json says when
// node_modules does not hold it, then becomes the command. Uses Node's own modules only.
//
//   node scripts/bootstrap.mjs                       install if needed
//   node scripts/bootstrap.mjs vitest run test/unit  install if needed, then run
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const NEEDED = [20, 19];

/**
 * Runs a command with this terminal, hands signals on, and answers its exit code (128 + n for a signal).
 *
 * @param {string} command
 * @param {string[]} args
 * @returns {Promise<number>}
 */
function run(command, args) {
  return new Promise((resolve) => {
    const windows = process.platform === 'win32';
    const child = spawn(command, args, {
      cwd: root,
      stdio: 'inherit',
      shell: windows && command !== process.execPath,
      env: {
        ...process.env,
        PATH: join(root, 'node_modules', '.bin') + delimiter + (process.env['PATH'] ?? ''),
      },
    });
    /** @type {NodeJS.Signals[]} */
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    /** @param {NodeJS.Signals} signal */
    const pass = (signal) => {
      // A terminal has already sent Ctrl-C to the whole group; a second one would read as "force".
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    };
    for (const signal of signals) process.on(signal, pass);
    child.on('error', (error) => {
      console.error(`${command} cannot be started: ${error.message}`);
      resolve(127);
    });
    child.on('close', (code, signal) => {
      for (const name of signals) process.off(name, pass);
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0));
    });
  });
}

/**
 * Why node_modules is not what package-lock.json says, or undefined if it is. Compared by content: the times of
 * the two files say nothing after a checkout.
 *
 * @returns {string | undefined}
 */
function staleness() {
  /** @typedef {{ version?: string, optional?: boolean, link?: boolean }} Locked */
  /** @param {string} path */
  const packages = (path) =>
    /** @type {{ packages: Record<string, Locked> }} */ (JSON.parse(readFileSync(join(root, path), 'utf8')))
      .packages;
  const wanted = packages('package-lock.json');
  /** @type {Record<string, Locked>} */
  let installed;
  try {
    installed = packages('node_modules/.package-lock.json');
  } catch {
    return 'nothing is installed yet';
  }
  for (const [path, { version, optional, link }] of Object.entries(wanted)) {
    if (path === '' || link) continue;
    const present = installed[path];
    if (present === undefined ? !optional : present.version !== version) {
      return `${path.replace(/^.*node_modules\//, '')} ${version ?? ''} is not installed`;
    }
  }
  return undefined;
}

/** @returns {Promise<number>} */
async function install() {
  const reason = staleness();
  if (reason === undefined) return 0;
  console.error(
    `Installing dependencies with npm ci: ${reason}. This is done once and takes about a minute.`,
  );
  const started = performance.now();
  const npm = process.env['npm_execpath'];
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
  const code =
    npm !== undefined && /npm-cli\.c?js$/.test(npm)
      ? await run(process.execPath, [npm, ...args])
      : await run('npm', args);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  console.error(code === 0 ? `Installed in ${seconds} s.` : `npm ci failed with code ${code}.`);
  return code;
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const [neededMajor = 0, neededMinor = 0] = NEEDED;
if (major < neededMajor || (major === neededMajor && minor < neededMinor)) {
  console.error(`perdure needs Node ${NEEDED.join('.')} or later; this is ${process.version}.`);
  process.exit(1);
}

const [command, ...args] = process.argv.slice(2);
let code = await install();
if (code === 0 && command !== undefined) {
  code = await run(command === 'node' ? process.execPath : command, args);
}
process.exit(code);
