// Bundles the sessions' workflows of a build and keeps the bundle with it, so that a worker starts without
// bundling. Its name says which version of the SDK it holds. The argument is the directory of the build, which is
// renamed to `dist` later.
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';

const [folder = 'dist'] = process.argv.slice(2);
const { buildWorkflowBundle, prebuiltName } =
  /** @type {typeof import('../src/worker/workflow-bundle.ts')} */ (
    await import(pathToFileURL(resolve(folder, 'worker/workflow-bundle.js')).href)
  );

/**
 * Names modules by their place in the package: the same sources give the same bundle in every checkout.
 *
 * @param {string} text
 */
const anywhere = (text) => text.replaceAll(`/${folder}/`, '/dist/').replaceAll(resolve(), '/perdure');

/**
 * Marks comments with a copyright to be kept. The number of lines stays the same.
 *
 * @param {string} text
 */
const licensed = (text) =>
  text.replace(/^(?:\/\/.*\n)+/gm, (lines) =>
    /copyright/i.test(lines) ? `/*!${lines.replaceAll(/^\/\//gm, '').trimEnd()} */\n` : lines,
  );

// Other comments and the sources' text are most of the bundle, so leave them out: each worker reads code and map when
// it starts.
const { code, map } = await transform(licensed(await buildWorkflowBundle(undefined, resolve(folder))), {
  minifyWhitespace: true,
  legalComments: 'eof',
  sourcemap: 'external',
  sourcesContent: false,
});
const places = Buffer.from(anywhere(map)).toString('base64');
await writeFile(
  resolve(folder, prebuiltName),
  `${anywhere(code)}//# sourceMappingURL=data:application/json;charset=utf-8;base64,${places}\n`,
);
