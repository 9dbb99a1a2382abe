// Bundles the console. The argument is the folder for its files.
import { build } from 'esbuild';

const [outdir = 'dist/console'] = process.argv.slice(2);
await build({
  entryPoints: ['src/console/main.tsx', 'src/console/main.css', 'src/console/index.html'],
  outdir,
  bundle: true,
  minify: true,
  loader: { '.html': 'copy' },
  jsx: 'automatic',
  jsxImportSource: 'preact',
  format: 'esm',
  target: 'es2022',
  legalComments: 'eof',
  logLevel: 'warning',
});
