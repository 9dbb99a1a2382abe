// Bundles the sessions' workflows of a build and keeps the bundle with it, so that a worker starts without
// bundling. The argument is the directory of the build; it will be `dist`, whatever it is called until then.
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder = 'dist'] = process.argv.slice(2);
const { buildWorkflowBundle } = /** @type {typeof import('../src/worker/workflow-bundle.ts')} */ (
  await import(pathToFileURL(resolve(folder, 'worker/workflow-bundle.js')).href)
);

/**
 * Names modules by their place in the package: the same sources give the same bundle in every checkout.
 *
 * @param {string} text
 */
const anywhere = (text) => text.replaceAll(`/${folder}/`, '/dist/').replaceAll(resolve(), '/perdure');

const MAP = 'sourceMappingURL=data:application/json;charset=utf-8;base64,';
const [code = '', map] = (await buildWorkflowBundle()).split(MAP);
if (map === undefined) throw new Error('the bundle has no source map where one is expected');
// Without the sources' text, which is most of it: each worker reads the map when it starts.
const parsed = /** @type {Record<string, unknown>} */ (
  JSON.parse(anywhere(Buffer.from(map, 'base64').toString()))
);
const { sourcesContent: _, ...places } = parsed;
const moved = Buffer.from(JSON.stringify(places)).toString('base64');
await writeFile(resolve(folder, 'workflow-bundle.js'), anywhere(code) + MAP + moved);
