import { Component, type ErrorInfo, type ReactNode } from "react";
import { ViewError } from "./view";

interface Props {
  /** The address. Another one renders the children again. */
  address: string;
  children: ReactNode;
}

interface State {
  address: string;
  failure: { error: unknown } | null;
  componentStack: string | undefined;
}

/** Shows the error of a view in its place, until another address is opened or the person tries again. */
export class RouteBoundary extends Component<Props, State> {
  override state: State = { address: this.props.address, failure: null, componentStack: undefined };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { failure: { error } };
  }

  static getDerivedStateFromProps({ address }: Props, state: State): Partial<State> | null {
    return address === state.address ? null : { address, failure: null, componentStack: undefined };
  }

  override componentDidCatch(_: unknown, { componentStack }: ErrorInfo) {
    this.setState({ componentStack: componentStack ?? undefined });
  }

  override render() {
    const { failure, componentStack } = this.state;
    if (!failure) return this.props.children;
    const reset = () => this.setState({ failure: null, componentStack: undefined });
    return <ViewError error={failure.error} componentStack={componentStack} onReset={reset} />;
  }
}
