"""A fork waits for those who are inside a gate, and nobody gets in meanwhile."""

import threading

from memoranda.forks import ForkGate


def test_a_fork_waits_until_nobody_else_is_inside():
    gate, inside, leave, closed = ForkGate(20), threading.Event(), threading.Event(), threading.Event()

    def stay():
        with gate.passed():
            inside.set()
            leave.wait(20)

    def close():
        gate.close()
        closed.set()

    staying, closing = threading.Thread(target=stay), threading.Thread(target=close)
    staying.start()
    assert inside.wait(20)
    closing.start()
    assert not closed.wait(0.05)
    leave.set()
    assert closed.wait(20)
    staying.join()
    closing.join()


def test_who_comes_while_a_fork_is_under_way_waits_for_its_end():
    gate, passed = ForkGate(20), threading.Event()
    gate.close()

    def come():
        with gate.passed():
            passed.set()

    coming = threading.Thread(target=come)
    coming.start()
    assert not passed.wait(0.05)
    gate.open()
    assert passed.wait(20)
    coming.join()


def test_who_forks_from_inside_waits_for_nobody_and_may_go_on():
    gate = ForkGate(20)
    with gate.passed():
        gate.close()
        with gate.passed():
            pass
    gate.open()


def test_a_fork_goes_on_when_somebody_stays_too_long():
    gate, inside, leave = ForkGate(0.01), threading.Event(), threading.Event()

    def stay():
        with gate.passed():
            inside.set()
            leave.wait(20)

    staying = threading.Thread(target=stay)
    staying.start()
    assert inside.wait(20)
    gate.close()
    gate.open()
    leave.set()
    staying.join()
