import { type ReactNode, useId } from "react";
import { classNames } from "./class-names";
import styles from "./table.module.css";

export interface Column<T> {
  header: string;
  /** Numbers are aligned at the end and have digits of equal width. */
  isNumber?: boolean;
  cell(row: T): ReactNode;
}

interface TableProps<T> {
  /** What the table lists. Screen readers read it, and it is the name of the area that scrolls. */
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowKey(row: T): string;
}

/** Rows and columns. A table that is wider than its place scrolls inside it, also with the keyboard. */
export function Table<T>({ caption, columns, rows, rowKey }: TableProps<T>) {
  const id = useId();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what has the focus
    <section className={styles.scroller} aria-labelledby={id} tabIndex={0}>
      <table className={styles.table}>
        <caption id={id} className="visually-hidden">
          {caption}
        </caption>
        <thead>
          <tr>
            {columns.map(({ header, isNumber }) => (
              <th key={header} scope="col" className={classNames(isNumber && styles.number)}>
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map(({ header, isNumber, cell }) => (
                <td key={header} className={classNames(isNumber && styles.number)}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
