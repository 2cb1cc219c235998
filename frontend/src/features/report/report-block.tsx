import type { ReactNode } from "react";
import type { Sentence } from "@/shared/api/reports";
import { type Block, splitCells } from "./report-blocks";

interface ReportBlockProps {
  block: Block;
  /** Renders a sentence. With `text`, only that text of it. */
  renderSentence(sentence: Sentence, text?: string): ReactNode;
}

/** A paragraph, a list or a table of a report. */
export function ReportBlock({ block, renderSentence }: ReportBlockProps) {
  if (block.kind === "list") {
    return (
      <ul>
        {block.sentences.map((sentence) => (
          <li dir="auto" key={sentence.id}>
            {renderSentence(sentence)}
          </li>
        ))}
      </ul>
    );
  }
  if (block.kind === "table") {
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled with the keyboard
      <div className="report-table" tabIndex={0}>
        <table>
          <tbody>
            {block.sentences.map((row) => (
              <Row key={row.id} row={row} renderSentence={renderSentence} />
            ))}
          </tbody>
        </table>
      </div>
    );
  }
  return <p dir="auto">{block.sentences.map((sentence) => renderSentence(sentence))}</p>;
}

function Row({ row, renderSentence }: { row: Sentence; renderSentence: ReportBlockProps["renderSentence"] }) {
  const cells = splitCells(row.text);
  if (row.layout === "header") {
    return (
      <tr>
        {cells.map((cell, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a report version never changes
          <th dir="auto" key={at}>
            {cell}
          </th>
        ))}
      </tr>
    );
  }
  return (
    <tr>
      {cells.map((cell, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a report version never changes
        <td dir="auto" key={at}>
          {at === cells.length - 1 ? renderSentence(row, cell) : cell}
        </td>
      ))}
    </tr>
  );
}
