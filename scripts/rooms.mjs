// Checks the directions of imports, and that the check has seen the modules: a parser that reads nothing finds no
// violation either.
import { existsSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { cruise } from 'dependency-cruiser';
import { build } from 'esbuild';
import { forbidden, options, ROOMS } from '../.dependency-cruiser.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { floor: { type: 'string', default: '60' } },
});
const root = positionals[0] ?? process.cwd();
const floor = Number(values.floor);
process.chdir(root);

const onDisk = readdirSync('src', { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /(?<!\.d)\.ts$/.test(entry.name))
  .map((entry) => relative('.', join(entry.parentPath, entry.name)).split(sep).join('/'));

const { output } = await cruise(['src'], {
  ...options,
  baseDir: process.cwd(),
  validate: true,
  ruleSet: { forbidden },
});
if (typeof output === 'string') throw new Error('dependency-cruiser answered with text, not with modules');

/** @type {string[]} */
const problems = output.summary.violations.map(
  ({ from, to, rule, cycle }) =>
    `${rule.name}: ${from} -> ${(cycle ?? []).map(({ name }) => name).join(' -> ') || to}\n    ` +
    (forbidden.find(({ name }) => name === rule.name)?.comment ?? ''),
);

const seen = new Map(output.modules.map((module) => [module.source, module]));
for (const path of onDisk) {
  if (!seen.has(path)) problems.push(`not seen: ${path}`);
  const [, room = '', ...rest] = path.split('/');
  if (path !== 'src/index.ts' && (rest.length === 0 || !(room in ROOMS))) {
    problems.push(`no room: ${path} lies in none of ${Object.keys(ROOMS).join(', ')}`);
  }
}
if (existsSync('src/console/main.tsx')) {
  const { metafile } = await build({
    entryPoints: ['src/console/main.tsx'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    bundle: true,
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  const { rooms = [], packages = [] } = ROOMS['console'] ?? {};
  const allowed = new RegExp(
    `^src/(${['console', ...rooms].join('|')})/|node_modules/(${packages.join('|')})/`,
  );
  for (const path of Object.keys(metafile.inputs)) {
    if (!allowed.test(path)) problems.push(`console-rooms: the page imports ${path}`);
  }
}
const edges = onDisk.reduce((sum, path) => sum + (seen.get(path)?.dependencies.length ?? 0), 0);
if (onDisk.length < floor) problems.push(`only ${onDisk.length} modules in src; at least ${floor} expected`);
if (edges < onDisk.length / 2) problems.push(`only ${edges} imports seen in ${onDisk.length} modules`);

for (const problem of problems) console.error(problem);
console.log(`${onDisk.length} modules, ${edges} imports, ${problems.length} problems`);
process.exitCode = problems.length > 0 ? 1 : 0;
