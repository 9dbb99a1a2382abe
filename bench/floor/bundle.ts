/** The floor's workflows, bundled as its users do it. */
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

export function bundleFloor(): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./workflow.js', import.meta.url)),
    logger: new DefaultLogger('ERROR'),
  });
}
