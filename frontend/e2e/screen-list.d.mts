/** The screens that a browser opens. The fields that tests read; `screen-list.mjs` describes all. */
export const SCREENS: readonly { name: string }[];
