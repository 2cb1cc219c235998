"""`python -m tests.agentdojo`: how many of AgentDojo's calls are let through, at once or by a person."""

from tests.agentdojo.counts import benign, injected


def main() -> None:
    own, foreign = benign(), injected()
    message = f"{own.allowed} allowed at once, {own.approvals} asked about, {own.denied} denied"
    print(f"of {own.calls} calls of user tasks: {message}")
    print(
        f"of {foreign.calls} injected calls that act, in {foreign.pairs} pairs: {foreign.denied} denied, "
        f"{foreign.approvals} asked about, {foreign.allowed} allowed"
    )
    print(f"pairs in which no injected call is made without a person: {foreign.safe} of {foreign.pairs}")


main()
