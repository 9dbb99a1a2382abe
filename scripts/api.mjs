// Compares the public API with the reports in etc/, one for each entry of package.json's exports. With --update
// it writes them: the change of a report is the review of an API change.
import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';

const update = process.argv.includes('--update');
const { exports } = /** @type {{ exports: Record<string, string | { types: string }> }} */ (
  JSON.parse(readFileSync('package.json', 'utf8'))
);
const entries = Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [] : [entry.types]));
if (entries.length === 0) throw new Error('package.json exports no types');

const base = ExtractorConfig.loadFile('api-extractor.json');
for (const types of entries) {
  const folder = basename(join(types, '..'));
  const name = folder === 'dist' ? 'index' : folder;
  const report = `${name}.api.md`;
  /** @type {string[]} */
  const messages = [];
  const result = Extractor.invoke(
    ExtractorConfig.prepare({
      configObject: {
        ...base,
        projectFolder: process.cwd(),
        mainEntryPointFilePath: resolve(types),
        apiReport: { ...base.apiReport, enabled: true, reportFileName: report },
      },
      configObjectFullPath: resolve('api-extractor.json'),
      packageJsonFullPath: resolve('package.json'),
    }),
    {
      localBuild: update,
      messageCallback: (message) => {
        message.handled = true;
        const silent = [ExtractorLogLevel.None, ExtractorLogLevel.Verbose, ExtractorLogLevel.Info];
        if (silent.includes(message.logLevel)) return;
        const place = message.sourceFilePath
          ? ` (${message.sourceFilePath}:${message.sourceFileLine ?? 0})`
          : '';
        messages.push(`${message.messageId}: ${message.text}${place}`);
      },
    },
  );
  const stale = result.apiReportChanged;
  if (!result.succeeded && !(update && result.errorCount === 0)) process.exitCode = 1;
  console.log(`etc/${report}: ${stale ? (update ? 'written' : 'differs from the source') : 'as it was'}`);
  if (stale && !update) console.log('    run `npm run api:update` and review the change');
  for (const message of messages) console.log(`    ${message}`);
}
