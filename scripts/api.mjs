// Compares the public API with the reports in etc/, one for each entry of package.json's exports. With --update
// it writes them: the change of a report is the review of an API change.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';

const update = process.argv.includes('--update');
const { exports } = /** @type {{ exports: Record<string, string | { types: string }> }} */ (
  JSON.parse(readFileSync('package.json', 'utf8'))
);
const entries = Object.entries(exports).flatMap(([door, entry]) =>
  typeof entry === 'string' ? [] : [{ name: door === '.' ? 'index' : basename(door), types: entry.types }],
);
if (entries.length === 0) throw new Error('package.json exports no types');

mkdirSync('etc', { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), 'perdure-api-'));
process.on('exit', () => rmSync(scratch, { recursive: true }));
const base = ExtractorConfig.loadFile('api-extractor.json');
/**
 * What the main door exports. It comes first: the other doors may use its names without exporting them again.
 *
 * @type {Set<string>}
 */
const shown = new Set();
for (const { name, types } of entries) {
  const report = `${name}.api.md`;
  if (!existsSync(types)) {
    console.log(`${types}: exported, but not built`);
    process.exitCode = 1;
    continue;
  }
  /** @type {string[]} */
  const messages = [];
  const result = Extractor.invoke(
    ExtractorConfig.prepare({
      configObject: {
        ...base,
        projectFolder: process.cwd(),
        mainEntryPointFilePath: resolve(types),
        apiReport: { ...base.apiReport, enabled: true, reportFileName: report, reportTempFolder: scratch },
      },
      configObjectFullPath: resolve('api-extractor.json'),
      packageJsonFullPath: resolve('package.json'),
    }),
    {
      localBuild: update,
      messageCallback: (message) => {
        message.handled = true;
        const silent = [ExtractorLogLevel.None, ExtractorLogLevel.Verbose, ExtractorLogLevel.Info];
        if (silent.includes(message.logLevel) || message.messageId.startsWith('console-api-report')) return;
        const [, symbol = ''] = /^The symbol "(\w+)"/.exec(message.text) ?? [];
        if (message.messageId === 'ae-forgotten-export' && shown.has(symbol)) return;
        const place = message.sourceFilePath
          ? ` (${message.sourceFilePath}:${message.sourceFileLine ?? 0})`
          : '';
        messages.push(`${message.messageId}: ${message.text}${place}`);
      },
    },
  );
  const stale = result.apiReportChanged;
  const text = readFileSync(join(scratch, report), 'utf8');
  const empty = !/^export /m.test(text);
  if (name === 'index') {
    for (const [, symbol = ''] of text.matchAll(/^export (?:[a-z]+ )+(\w+)/gm)) shown.add(symbol);
    for (const [, symbol = ''] of text.matchAll(/^export \{ (\w+) \}/gm)) shown.add(symbol);
  }
  if (empty) messages.push('exports nothing');
  if (messages.length > 0 || (stale && !update)) process.exitCode = 1;
  console.log(`etc/${report}: ${stale ? (update ? 'written' : 'differs from the source') : 'as it was'}`);
  if (stale && !update) console.log('    run `npm run api:update` and review the change');
  for (const message of messages) console.log(`    ${message}`);
}
