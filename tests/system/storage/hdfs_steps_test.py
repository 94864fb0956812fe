"""Runs in Hadoop's file system by a server whose files take no name that another has, as HttpFS: a file is replaced in
steps, between which a life may end."""
import checkpoint_test
import hdfs_test
import program


class Steps(hdfs_test.Runs, hdfs_test.HdfsCase, checkpoint_test.CheckpointCase):
    writes_min = 5
    # What does not depend on how a file is replaced
    test_tables_are_the_same_bytes_as_here_and_are_restored = None
    test_training_goes_on_while_the_storage_does_not_answer = None
    test_a_lease_that_nobody_can_see_holds_its_checkpoint = None

    @staticmethod
    def is_write(request):
        """The state file's alone: what replaces others is the same."""
        return hdfs_test.Runs.is_write(request) and "/run/checkpoint" in request.path

    def start(self):
        served = super().start()
        served.takes_options = False
        return served

    def newest(self):
        """Whoever looks for the state file gives it its name."""
        self.dtrain("checkpoint", "show", self.bucket + "/run")
        return super().newest()

    def test_what_a_kill_left_beside_a_free_name_gets_it(self):
        self.assertEqual(self.run_dtrain().returncode, 0)
        state = self.served.files.pop("/bucket/run/checkpoint")
        self.served.files["/bucket/run/checkpoint.tempstate0"] = state
        self.assertIn("model.ckpt-40, newest", self.dtrain("checkpoint", "ls", self.bucket + "/run"))
        self.assertEqual(self.served.files["/bucket/run/checkpoint"], state)
        self.assert_whole()

    def test_what_a_kill_left_beside_a_name_goes_with_it(self):
        left = "/bucket/run/.token.tempstate0"

        def leave(_, request):
            if self.is_write(request):
                self.served.files[left] = b"of another life"
        self.served.fault = leave
        self.assertEqual(self.run_dtrain().returncode, 0)
        self.served.fault = lambda *_: None
        self.assertNotIn(left, list(self.served.files))


if __name__ == "__main__":
    program.main()
