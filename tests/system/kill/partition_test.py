"""A chief that is cut off and lives on, on a host whose link is down for a while: one alone publishes."""
import unittest

from leading_test import HEIR, SOON, LeadingCase, plan
from program import hosts, lives, main
from program.hosts import Hosts
from program.lives import CHIEF, LEADS

FEW = {"train.last_step": 200}  # nobody continues while the chief is cut off
PORT = 2221  # of the first task: the hosts are ours, and so are their ports


class PartedCluster(lives.LivingCluster):
    """The chief is on a host of its own; folder and disk are those of both."""

    def __init__(self, folder, chosen):
        super().__init__(folder, chosen)
        self.land = Hosts(None).__enter__()
        self.hosts = {job: [self.at(f"{job}/{i}", PORT + i) for i in range(len(held))]
                      for job, held in self.hosts.items()}

    @staticmethod
    def side(name):
        return 1 if name == CHIEF else 0

    def at(self, name, port):
        return f"{Hosts.ADDRESSES[self.side(name)]}:{port + 100 * name.startswith('worker')}"

    def before(self, name):
        return self.land.inside(self.side(name))

    def start_planned(self):
        for name in self.plan.order:
            self.start(name)

    def link(self, word):
        Hosts.set_up(*self.before(CHIEF), "ip", "link", "set", Hosts.DEVICE, word)

    def part(self):
        self.link("down")
        self.assert_alive()

    def kill(self):
        super().kill()
        self.land.end()


@unittest.skipUnless(hosts.can_be_made(), "no network namespace can be made here")
class Partition(LeadingCase):
    cluster_of = PartedCluster

    def cut_off(self, chosen, until):
        """The chief, until its heir says so; both live."""
        published = 0

        def part(cluster):
            nonlocal published
            with cluster.standstill():
                cluster.part()
                cluster.wait_for_line(HEIR, LEADS)
            cluster.wait_for_line(HEIR, until)
            with cluster.standstill():
                published = cluster.text_of(CHIEF).count("saved ")
                cluster.link("up")
                cluster.wait_for_line(CHIEF, f"worker/1 {LEADS}")
        cluster = self.disturb(chosen, part)
        self.assert_led_by(cluster, HEIR)
        self.assert_published_by_one(cluster)
        self.assertEqual(cluster.text_of(CHIEF).count("saved "), published, cluster.story())
        return cluster

    def test_no_bit_changes_in_sync(self):
        reference = self.reference(plan("sync", FEW))
        cluster = self.cut_off(plan("sync", FEW), LEADS)
        self.assertEqual(self.differences(cluster, reference), [], cluster.story())

    def test_the_others_go_on_and_save_meanwhile_in_async(self):
        self.cut_off(plan("async", SOON), "saved ")


if __name__ == "__main__":
    main()
