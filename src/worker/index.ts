export { createWorker, type SessionWorkerOptions } from './create-worker.ts';
export { modelsFromEnvironment } from './models.ts';
export { buildWorkflowBundle, workflowBundle, workflowsPath } from './workflow-bundle.ts';
