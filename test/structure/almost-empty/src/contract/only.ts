export const only: number = 1;
